/* pyslurm 25.11 calls the job-id functions by their older signatures; this is Slurm's own switch. */
#ifndef SLUICE_OVERLAY_SLURM_H
#define SLUICE_OVERLAY_SLURM_H
#define SLURM_BACKWARD_COMPAT
#include_next <slurm/slurm.h>
#define slurm_free_ctl_conf slurm_free_conf
#endif
