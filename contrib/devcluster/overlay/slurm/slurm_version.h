/* The release that pyslurm 25.11 is made for: its setup compares major releases. */
#ifndef SLUICE_OVERLAY_SLURM_VERSION_H
#define SLUICE_OVERLAY_SLURM_VERSION_H
#define SLURM_VERSION_NUMBER 0x190b00
#define SLURM_VERSION_NUM(a,b,c) (((a) << 16) + ((b) << 8) + (c))
#define SLURM_VERSION_MAJOR(a)   (((a) >> 16) & 0xff)
#define SLURM_VERSION_MINOR(a)   (((a) >>  8) & 0xff)
#define SLURM_VERSION_MICRO(a)    ((a)        & 0xff)
#endif
