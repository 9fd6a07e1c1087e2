// Draws the plots of the page in the colours of its style sheet, anew when those change.
(() => {
  "use strict";
  const narrow = () => window.innerWidth < 640;
  const config = {
    responsive: true, displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const themed = (figure) => {
    const css = getComputedStyle(document.documentElement);
    const color = (name) => css.getPropertyValue(name).trim();
    const layout = JSON.parse(JSON.stringify(figure.layout));
    layout.font = {color: color("--text"), family: "system-ui, sans-serif", size: narrow() ? 11 : 13};
    layout.hoverlabel = Object.assign({}, layout.hoverlabel, {
      bgcolor: color("--back"), bordercolor: color("--line"), font: {color: color("--text")},
    });
    layout.legend = Object.assign({bgcolor: "rgba(0,0,0,0)"}, layout.legend);
    // Upright beside the plot: a row of buttons would lie on the legend.
    layout.modebar = {
      orientation: "v", bgcolor: "rgba(0,0,0,0)", color: color("--grid"), activecolor: color("--text"),
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis/.test(key))) {
      layout[axis].gridcolor = color("--grid");
      layout[axis].linecolor = color("--line");
      layout[axis].tickcolor = color("--line");
    }
    const data = figure.data.map((trace) => {
      if (!trace.marker) return trace;
      const marker = JSON.parse(JSON.stringify(trace.marker));
      // Outlines and marks without a meaning of their own take the page's colours.
      if (marker.line && !marker.line.color) marker.line.color = color("--panel");
      if (!marker.color) marker.color = color("--text");
      return Object.assign({}, trace, {marker});
    });
    return {data, layout};
  };
  const chosen = {};
  const draw = (name) => {
    const {data, layout} = themed(PLOTS[name][chosen[name] || 0].figure);
    document.getElementById(name).style.minHeight = layout.height + "px";
    const mode = Object.assign({}, config, {displayModeBar: narrow() ? false : "hover"});
    return Plotly.react(name, data, layout, mode);
  };
  const drawAll = () => Promise.all(Object.keys(PLOTS).map(draw));
  for (const select of document.querySelectorAll("select[data-plot]")) {
    select.addEventListener("change", () => {
      chosen[select.dataset.plot] = select.selectedIndex;
      draw(select.dataset.plot);
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", drawAll);
  drawAll().then(() => document.documentElement.setAttribute("data-drawn", "all"));
})();
