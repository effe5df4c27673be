// A chart as a PNG: the SVG with the colours it has on the page, drawn onto a canvas.
(() => {
  const SCALE = 2;
  const MARGIN = 16;
  const KEPT = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap",
    "opacity", "display", "text-anchor", "paint-order", "font-family", "font-size", "font-weight",
  ];

  // Nothing outside a picture reaches into it: what the style sheet says goes along as attributes.
  const styled = (svg, box) => {
    const copy = svg.cloneNode(true);
    const from = [svg, ...svg.querySelectorAll("*")];
    const to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((one, place) => {
      const style = getComputedStyle(one);
      for (const name of KEPT) to[place].setAttribute(name, style.getPropertyValue(name));
      to[place].removeAttribute("class");
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    // Words of an axis stand to the left of the drawing, in its margin.
    copy.setAttribute("viewBox", `${-box.left} 0 ${box.width} ${box.height}`);
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    return copy;
  };

  const save = (canvas, name) => {
    const link = document.createElement("a");
    link.download = `${name}.png`;
    link.href = canvas.toDataURL("image/png");
    link.click();
  };

  const draw = (figure) => {
    const svg = figure.querySelector("svg[role=img]");
    const { width, height } = svg.getBoundingClientRect();
    const left = Number.parseFloat(getComputedStyle(svg).marginLeft) || 0;
    const box = { left, width: width + left, height };
    const text = new XMLSerializer().serializeToString(styled(svg, box));
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      canvas.width = (box.width + 2 * MARGIN) * SCALE;
      canvas.height = (box.height + 2 * MARGIN + 24) * SCALE;
      const brush = canvas.getContext("2d");
      const page = getComputedStyle(document.documentElement);
      brush.scale(SCALE, SCALE);
      brush.fillStyle = page.getPropertyValue("--card").trim();
      brush.fillRect(0, 0, canvas.width, canvas.height);
      brush.fillStyle = page.getPropertyValue("--ink").trim();
      brush.font = `600 14px ${getComputedStyle(figure).fontFamily}`;
      brush.fillText(figure.querySelector("figcaption span").textContent, MARGIN, MARGIN + 12);
      brush.drawImage(image, MARGIN, MARGIN + 24, box.width, box.height);
      save(canvas, figure.id);
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("button[data-png]")) {
      button.hidden = false;
      button.addEventListener("click", () => draw(document.getElementById(button.dataset.png)));
    }
  });
})();
