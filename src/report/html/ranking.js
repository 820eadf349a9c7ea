/* Rankings: each trial with the mean, and beside it the ratio to the baseline with the interval that was tested; one block for each durability class. */
var CLASS_WORDS = {
  not_applicable: "reads only, no commit to lose",
  flushed: "flushes reach every visible level", declared_stable: "the device claims to need no flushes; unverified",
  unknown: "durability cannot be determined", delayed: "loses the last commits on power loss",
  may_tear: "a page torn by a power cut cannot be repaired", volatile: "may lose everything on power loss"
};
var CLASS_TITLES = { not_applicable: "Not applicable", flushed: "Flushed", declared_stable: "Declared stable", unknown: "Unknown", delayed: "Delayed", may_tear: "May tear", volatile: "Volatile" };

/** Width from which rates and ratios stand side by side. */
var SIDE_BY_SIDE = 760;

function rankingChart(holder) {
  var index = Number(holder.dataset.index), ranking = findings.rankings[index];
  chart(holder, function (width) { return rankingOption(ranking, page.figures[index], page.ratios[index], width); });
}

/** Where everything goes: blocks and rows with their pixels from the top. */
function rankingLayout(ranking, width) {
  var names = [].concat.apply([], ranking.classes.map(function (block) { return block.rows.map(function (row) { return row.label; }); }));
  var nameWidth = widestText(names, 13, 500);
  var layout = { narrow: nameWidth > width * 0.36, blocks: [], rows: [], y: 2, width: width };
  layout.left = layout.narrow ? 18 : nameWidth + 26;
  ranking.classes.forEach(function (block) {
    var at = { key: block.class, top: layout.y };
    layout.y += 28;
    block.rows.forEach(function (row) {
      // A name above its row takes as many lines as it needs.
      var lines = layout.narrow ? Math.ceil(textWidth(row.label, 13, 500) * 1.08 / (width - 20)) : 1;
      var height = layout.narrow ? 28 + 16 * lines : 28;
      layout.rows.push({ row: row, key: block.class, middle: layout.y + (layout.narrow ? 12 + 16 * lines : 14), top: layout.y, height: height });
      layout.y += height;
    });
    layout.y += 8;
    at.bottom = layout.y - 2;
    layout.blocks.push(at);
  });
  return layout;
}

function widestText(texts, size, weight) {
  return Math.ceil(Math.max.apply(null, texts.map(function (t) { return textWidth(t, size, weight); })));
}

/** Rows that a scale fits: those that survive a power cut, where there are any. A volatile case beyond it leaves the frame. */
function scaledRows(layout) {
  var kept = layout.rows.filter(function (r) { return r.key !== "volatile"; });
  return (kept.length ? kept : layout.rows).map(function (r) { return r.row; });
}

/** Rates: each trial as a dot below the mean. */
function ratePanel(ranking, figures, layout) {
  var rates = [0];
  scaledRows(layout).forEach(function (row) {
    rates.push(row.rate.value);
    row.trials.forEach(function (trial) { rates.push(trial.rate); });
  });
  var most = 1.02 * Math.max.apply(null, rates), step = roundStep(most, layout.width < 560 ? 3 : 5);
  return {
    figures: figures, value: function (row) { return row.rate.value; }, dots: function (row) { return row.trials; }, ends: function () { return null; },
    min: 0, max: Math.max(step, Math.ceil(most / step) * step), one: false,
    axis: { interval: step, splitLine: { show: true, lineStyle: { color: variable("line") } }, name: ranking.unit }
  };
}

/** Ratios to the baseline with the intervals by which they were decided. */
function ratioPanel(ratios, layout, baseline) {
  var base = layout.rows.find(function (r) { return r.row.case === baseline; });
  var value = function (row) { return row.case === baseline ? 1 : row.comparison ? row.comparison.ratio.value : null; };
  var values = scaledRows(layout).map(value).filter(function (v) { return v !== null && v > 0; }).concat([1]);
  var least = Math.min.apply(null, values), most = Math.max.apply(null, values), low = least, high = most;
  scaledRows(layout).forEach(function (row) {
    if (!row.comparison || row.comparison.ratio.low === null) return;
    low = Math.min(low, row.comparison.ratio.low);
    high = Math.max(high, row.comparison.ratio.high);
  });
  // An interval that says nothing must not squeeze those that do.
  low = Math.max(low, least / 3);
  high = Math.min(high, most * 3);
  var panel = {
    figures: Object.assign({}, ratios, base ? { [baseline]: "baseline" } : {}), value: value, dots: function () { return []; }, one: true,
    ends: function (row) { return row.comparison && row.comparison.ratio.low !== null ? row.comparison.ratio : null; }
  };
  var name = "ratio to " + (base ? base.row.label : label(baseline));
  if (high / low > 3) {
    var log = logAxis([low, high], shown, {});
    return Object.assign(panel, { min: log.min, max: log.max, axis: { type: "log", axisLabel: log.axisLabel, axisTick: log.axisTick, name: name } });
  }
  var step = roundStep(high - low || 0.1, 5);
  return Object.assign(panel, { min: Math.floor(low / step - 0.01) * step, max: Math.ceil(high / step + 0.01) * step, axis: { interval: step, name: name,
    axisLabel: Object.assign(axis().axisLabel, { formatter: function (v) { return String(Number(v.toFixed(4))); } }) } });
}

function rankingOption(ranking, figures, ratios, width) {
  var layout = rankingLayout(ranking, width), panels = [ratePanel(ranking, figures, layout)], compared = layout.rows.find(function (r) { return r.row.comparison; });
  if (compared) panels.push(ratioPanel(ratios, layout, compared.row.comparison.baseline));
  var beside = compared && width >= SIDE_BY_SIDE, middle = beside ? layout.left + (width - layout.left) * 0.52 : width;
  var option = baseOption(), height = layout.y + 46;
  option.grid = [];
  option.xAxis = [];
  option.yAxis = [];
  option.series = [];
  option.tooltip.trigger = "item";
  option.tooltip.formatter = function (at) { return rankingTip(ranking, layout.rows[at.dataIndex]); };
  panels.forEach(function (panel, place) {
    panel.labelled = !(beside && place);
    panel.left = panel.labelled ? layout.left : middle + 24;
    panel.right = place ? width : middle;
    var texts = layout.rows.map(function (r) { return panel.figures[r.row.case] || ""; });
    option.grid.push({ left: panel.left, right: width - panel.right + widestText(texts, 12, 500) + 18, top: beside ? 0 : place * height, height: layout.y + 2, outerBoundsMode: "none" });
    option.xAxis.push(bottomAxis(Object.assign({ gridIndex: place, min: panel.min, max: panel.max, nameLocation: "middle", nameGap: 26 }, panel.axis)));
    option.yAxis.push({ gridIndex: place, type: "value", min: 0, max: layout.y + 2, inverse: true, show: false });
    var common = { type: "custom", xAxisIndex: place, yAxisIndex: place, clip: false };
    option.series.push(Object.assign({ silent: true, z: 1, renderItem: function (at, api) { return rankingBlock(panel, layout.blocks[at.dataIndex], api); },
      data: layout.blocks.map(function (block) { return [panel.min, block.top]; }), tooltip: { show: false } }, common));
    option.series.push(Object.assign({ z: 3, renderItem: function (at, api) { return rankingRow(panel, layout, layout.rows[at.dataIndex], api); },
      data: layout.rows.map(function (r) { return [panel.min, r.middle]; }) }, common));
  });
  return { option: option, height: beside ? height : panels.length * height };
}

function outcomeWords(comparison) {
  if (comparison.outcome === "undecided") return "undecided";
  var same = comparison.outcome.same_within, within = comparison.outcome.differs_within;
  if (same) return "the same within " + same + " %";
  return shown(comparison.ratio.value) + "×" + (within ? ", by less than " + within + " %" : "");
}

function rankingTip(ranking, at) {
  var lines = [{ name: ranking.unit, value: shown(at.row.rate.value), colour: variable(colourName(at.row.case)) }];
  lines.push({ name: at.row.trials.length === 1 ? "trial" : "trials", value: at.row.trials.map(function (t) { return shown(t.rate); }).join(", ") });
  var against = at.row.comparison;
  if (against) {
    lines.push({ name: "against " + label(against.baseline), value: outcomeWords(against) });
    if (against.ratio.low !== null) lines.push({ name: "interval of the test", value: shownInterval(against.ratio) });
  }
  lines.push({ name: CLASS_TITLES[at.key] + ": " + at.row.durability.reason, value: "" });
  return tip(at.row.label, lines);
}

/** Stripes for volatile blocks, as in the tables. */
function stripes() {
  var tile = document.createElement("canvas");
  tile.width = tile.height = 12;
  var ink = tile.getContext("2d");
  ink.strokeStyle = variable("stripe");
  ink.lineWidth = 1.6;
  ink.beginPath();
  [-12, 0, 12].forEach(function (x) { ink.moveTo(x, 12); ink.lineTo(x + 12, 0); });
  ink.stroke();
  return { image: tile, repeat: "repeat" };
}

function rankingBlock(panel, block, api) {
  var y = function (at) { return api.coord([panel.min, at])[1]; }, top = y(block.top), left = panel.labelled ? 0 : panel.left - 24, parts = [];
  var whole = { x: left, y: top, width: panel.right - left, height: y(block.bottom) - top };
  if (block.key === "volatile") parts.push({ type: "rect", shape: whole, style: { fill: stripes() } });
  if (panel.one) {
    var one = api.coord([1, 0])[0];
    parts.push({ type: "line", shape: { x1: one, x2: one, y1: top + 24, y2: y(block.bottom) }, style: { stroke: variable("line-strong"), lineWidth: 1, lineDash: [3, 3] } });
  }
  parts.push({ type: "rect", shape: Object.assign({}, whole, { height: 24 }), style: { fill: variable("panel") } });
  if (panel.labelled) {
    parts.push({ type: "text", style: { text: CLASS_TITLES[block.key], x: 4, y: top + 12, fill: variable("text"), font: "600 12px " + fontFamily, verticalAlign: "middle" } });
    parts.push({ type: "text", style: { text: CLASS_WORDS[block.key], x: 12 + textWidth(CLASS_TITLES[block.key], 12, 600), y: top + 12, fill: variable(block.key === "volatile" ? "alarm" : "muted"), font: "12px " + fontFamily, verticalAlign: "middle" } });
  }
  return { type: "group", children: parts };
}

function rankingRow(panel, layout, at, api) {
  var top = api.coord([panel.min, at.top])[1], y = api.coord([panel.min, at.middle])[1], weak = at.key === "volatile";
  var colour = variable(colourName(at.row.case)), ink = variable(weak ? "muted" : "text");
  var x = function (value) { return api.coord([Math.max(panel.min, Math.min(value, panel.max)), 0])[0]; };
  var left = panel.labelled ? 0 : panel.left;
  var parts = [
    { type: "rect", shape: { x: left, y: top, width: panel.right - left, height: at.height }, style: { fill: "rgba(0,0,0,0)" } },
    { type: "text", style: { text: panel.figures[at.row.case] || "–", x: panel.right - 2, y: y, fill: ink, align: "right", verticalAlign: "middle", font: "12px " + fontFamily } }
  ];
  if (panel.labelled) {
    parts.push({ type: "text", style: { text: at.row.label, x: layout.narrow ? 10 : layout.left - 14, y: layout.narrow ? top + 3 : y, fill: ink, align: layout.narrow ? "left" : "right", verticalAlign: layout.narrow ? "top" : "middle", lineHeight: 16, font: "500 13px " + fontFamily, width: layout.narrow ? panel.right - 20 : undefined, overflow: "break" } });
  }
  var value = panel.value(at.row), ends = panel.ends(at.row);
  var beyond = value !== null && (value > panel.max || value < panel.min);
  if (ends !== null && !beyond) {
    var low = x(ends.low), high = x(ends.high);
    parts.push({ type: "line", shape: { x1: low, x2: high, y1: y, y2: y }, style: { stroke: colour, lineWidth: 2, lineDash: weak ? [4, 3] : null, fill: null } });
    parts.push(ends.low < panel.min ? arrow(low, y, colour, -1) : whiskerCap(low, y, colour));
    parts.push(ends.high > panel.max ? arrow(high, y, colour, 1) : whiskerCap(high, y, colour));
  }
  panel.dots(at.row).forEach(function (trial) {
    if (trial.rate <= panel.max) parts.push(trialDot(x(trial.rate), y + 9, colour, trial.used));
  });
  if (value !== null) parts.push(beyond ? arrow(x(value), y, colour, value > panel.max ? 1 : -1) : rankingPoint(at, x(value), y, colour));
  return { type: "group", children: parts };
}

/** A trial below the mean; hollow where it is not in the figure. */
function trialDot(x, y, colour, used) {
  return { type: "circle", shape: { cx: x, cy: y, r: 2.4 }, style: { fill: used ? colour : variable("bg"), stroke: used ? null : colour, lineWidth: 1, opacity: 0.75 } };
}

function whiskerCap(x, y, colour) {
  return { type: "line", shape: { x1: x, x2: x, y1: y - 5, y2: y + 5 }, style: { stroke: colour, lineWidth: 2 } };
}

/** The tip of what goes on beyond the scale, to the right (1) or to the left (-1). */
function arrow(x, y, colour, way) {
  return { type: "polygon", shape: { points: [[x - way * 9, y - 5], [x, y], [x - way * 9, y + 5]] }, style: { fill: colour } };
}

/** The class as a shape: filled circle, filled square, diamond, triangle, hollow circle, hollow square. */
function rankingPoint(at, x, y, colour) {
  var hollow = { fill: variable("bg"), stroke: colour, lineWidth: 2 };
  if (at.key === "flushed") return { type: "circle", shape: { cx: x, cy: y, r: 5 }, style: { fill: colour, stroke: variable("bg"), lineWidth: 1.5 } };
  if (at.key === "declared_stable") return { type: "rect", shape: { x: x - 4.5, y: y - 4.5, width: 9, height: 9 }, style: { fill: colour, stroke: variable("bg"), lineWidth: 1.5 } };
  if (at.key === "may_tear") return { type: "polygon", shape: { points: [[x, y - 6], [x + 6, y + 5], [x - 6, y + 5]] }, style: hollow };
  if (at.key === "delayed") return { type: "polygon", shape: { points: [[x, y - 6], [x + 6, y], [x, y + 6], [x - 6, y]] }, style: hollow };
  if (at.key === "volatile") return { type: "circle", shape: { cx: x, cy: y, r: 4.5 }, style: hollow };
  return { type: "rect", shape: { x: x - 5, y: y - 5, width: 10, height: 10 }, style: hollow };
}
