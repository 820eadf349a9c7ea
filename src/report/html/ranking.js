/* Rankings: trials, points with whiskers, one block for each durability class. */
var CLASS_WORDS = {
  not_applicable: "reads only: no commit to lose",
  flushed: "flushes reach every visible level", declared_stable: "the device claims to need no flushes; unverified",
  unknown: "durability cannot be determined", delayed: "loses the last commits on power loss",
  may_tear: "a page torn by a power cut cannot be repaired", volatile: "may lose everything on power loss"
};
var CLASS_TITLES = { not_applicable: "Not applicable", flushed: "Flushed", declared_stable: "Declared stable", unknown: "Unknown", delayed: "Delayed", may_tear: "May tear", volatile: "Volatile" };

function rankingChart(holder) {
  var index = Number(holder.dataset.index), ranking = findings.rankings[index];
  chart(holder, function (width) { return rankingOption(ranking, page.figures[index], width); });
}

/** Height of the marks of a block with a scale of its own. */
var OWN_SCALE_HEIGHT = 20;

/** Where everything goes: blocks and rows with their pixels from the top. */
function rankingLayout(ranking, figures, width) {
  var names = [], values = [];
  ranking.classes.forEach(function (block) {
    block.rows.forEach(function (row) { names.push(row.label); values.push(figures[row.case]); });
  });
  var widest = function (texts, size) { return Math.max.apply(null, texts.map(function (t) { return textWidth(t, size, 500); })); };
  var nameWidth = Math.ceil(widest(names, 13));
  var layout = { narrow: nameWidth > width * 0.36, blocks: [], rows: [], y: 2, valueWidth: Math.ceil(widest(values, 12)) + 14, figures: figures };
  layout.left = layout.narrow ? 10 : nameWidth + 26;
  ranking.classes.forEach(function (block) {
    var at = { key: block.class, top: layout.y, own: null };
    layout.y += 28;
    block.rows.forEach(function (row) {
      // A name above its row takes as many lines as it needs.
      var lines = layout.narrow ? Math.ceil(textWidth(row.label, 13, 500) * 1.08 / (width - 20)) : 1;
      var height = layout.narrow ? 28 + 16 * lines : 28;
      layout.rows.push({ row: row, block: at, key: block.class, middle: layout.y + (layout.narrow ? 12 + 16 * lines : 14), top: layout.y, height: height });
      layout.y += height;
    });
    layout.y += 8;
    at.bottom = layout.y - 2;
    layout.blocks.push(at);
  });
  return layout;
}

/** The scale fits the cases that survive a power cut; volatile ones that lie beyond it get a scale of their own. */
function rankingScale(layout) {
  var kept = layout.rows.filter(function (r) { return r.key !== "volatile"; });
  return scaleOf(kept.length ? kept : layout.rows);
}

function scaleOf(rows) {
  var kept = rows.map(function (r) { return r.row; });
  var rates = kept.map(function (row) { return row.rate; });
  kept.forEach(function (row) { row.trials.forEach(function (t) { rates.push({ value: t.rate, high: null }); }); });
  return scaleTop(rates);
}

/** A step and an end for a scale that reaches `most`. */
function roundScale(most, width) {
  var step = roundStep(most, width < 560 ? 3 : 6);
  return { step: step, max: Math.max(step, Math.ceil(most / step) * step) };
}

/** Gives volatile cases beyond `max` a scale of their own, with room for its marks. */
function ownScales(layout, max, width) {
  layout.blocks.forEach(function (block) {
    var own = layout.rows.filter(function (r) { return r.block === block; });
    if (block.key !== "volatile" || !own.some(function (r) { return r.row.rate.value > max; })) return;
    block.own = roundScale(scaleOf(own), width);
    layout.blocks.forEach(function (later) { if (later.top > block.top) { later.top += OWN_SCALE_HEIGHT; later.bottom += OWN_SCALE_HEIGHT; } });
    layout.rows.forEach(function (r) { if (r.top > block.bottom) { r.top += OWN_SCALE_HEIGHT; r.middle += OWN_SCALE_HEIGHT; } });
    block.bottom += OWN_SCALE_HEIGHT;
    layout.y += OWN_SCALE_HEIGHT;
  });
}

function rankingOption(ranking, figures, width) {
  var layout = rankingLayout(ranking, figures, width);
  var scale = roundScale(rankingScale(layout), width), step = scale.step, max = scale.max;
  ownScales(layout, max, width);
  var option = baseOption();
  option.grid = { left: layout.left, right: layout.valueWidth + 4, top: 0, height: layout.y + 2, outerBoundsMode: "none" };
  option.xAxis = bottomAxis({ min: 0, max: max, interval: step, splitLine: { show: true, lineStyle: { color: variable("line") } }, name: ranking.unit, nameLocation: "middle", nameGap: 26 });
  option.yAxis = { type: "value", min: 0, max: layout.y + 2, inverse: true, show: false };
  option.tooltip.trigger = "item";
  option.tooltip.formatter = function (at) { return rankingTip(ranking, layout.rows[at.dataIndex]); };
  option.series = [
    { type: "custom", silent: true, z: 1, clip: false, renderItem: function (at, api) { return rankingBlock(layout, layout.blocks[at.dataIndex], api, max, width); },
      data: layout.blocks.map(function (block) { return [0, block.top]; }), tooltip: { show: false } },
    { type: "custom", z: 3, clip: false, renderItem: function (at, api) { return rankingRow(layout, layout.rows[at.dataIndex], api, max, width); },
      data: layout.rows.map(function (r) { return [Math.min(r.row.rate.value, max), r.middle]; }) }
  ];
  return { option: option, height: layout.y + 46 };
}

var PAIR_OUTCOMES = { undecided: "undecided", same_within: "the same within 5 %" };

function rankingTip(ranking, at) {
  var rate = at.row.rate, lines = [{ name: ranking.unit, value: shown(rate.value), colour: variable(colourName(at.row.case)) }];
  if (rate.low !== null) lines.push({ name: "comparison interval", value: shown(rate.low) + " – " + shown(rate.high) });
  lines.push({ name: at.row.trials.length === 1 ? "trial" : "trials", value: at.row.trials.map(function (t) { return shown(t.rate); }).join(", ") });
  var against = at.row.comparison;
  if (against) lines.push({ name: "against " + label(against.baseline), value: PAIR_OUTCOMES[against.outcome] || shown(against.ratio.value) + "×" });
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

function rankingBlock(layout, block, api, max, width) {
  var parts = [];
  if (block.key === "volatile") {
    parts.push({ type: "rect", shape: { x: 0, y: block.top, width: width, height: block.bottom - block.top }, style: { fill: stripes() } });
  }
  var base = layout.rows.find(function (r) {
    return r.key === block.key && r.row.rate.low !== null && layout.rows.some(function (o) { return o.row.comparison && o.row.comparison.baseline === r.row.case; });
  });
  if (base) {
    var from = api.coord([base.row.rate.low, 0])[0], to = api.coord([Math.min(base.row.rate.high, max), 0])[0];
    parts.push({ type: "rect", shape: { x: from, y: block.top + 24, width: Math.max(1, to - from), height: block.bottom - block.top - 24 }, style: { fill: variable("band") } });
  }
  if (block.own) {
    for (var mark = 0; mark <= block.own.max * 1.0001; mark += block.own.step) {
      parts.push({ type: "text", style: { text: shown(mark), x: api.coord([mark / block.own.max * max, 0])[0], y: block.bottom - 4, fill: variable("muted"), align: "center", verticalAlign: "bottom", font: "11px " + fontFamily } });
    }
    parts.push({ type: "line", shape: { x1: 0, x2: width, y1: block.bottom, y2: block.bottom }, style: { stroke: variable("line-strong"), lineWidth: 1 } });
  }
  parts.push({ type: "rect", shape: { x: 0, y: block.top, width: width, height: 24 }, style: { fill: variable("panel") } });
  parts.push({ type: "text", style: { text: CLASS_TITLES[block.key], x: 4, y: block.top + 12, fill: variable("text"), font: "600 12px " + fontFamily, verticalAlign: "middle" } });
  parts.push({ type: "text", style: { text: CLASS_WORDS[block.key], x: 12 + textWidth(CLASS_TITLES[block.key], 12, 600), y: block.top + 12, fill: variable(block.key === "volatile" ? "alarm" : "muted"), font: "12px " + fontFamily, verticalAlign: "middle" } });
  if (block.own) {
    parts.push({ type: "text", style: { text: width < 560 ? "own scale" : "separate scale", x: width - 4, y: block.top + 12, fill: variable("text"), align: "right", verticalAlign: "middle", font: "600 12px " + fontFamily } });
  }
  return { type: "group", children: parts };
}

function rankingRow(layout, at, api, max, width) {
  var rate = at.row.rate, weak = at.key === "volatile", y = at.middle;
  var colour = variable(colourName(at.row.case)), ink = weak ? variable("muted") : variable("text");
  var own = at.block.own, top = own ? own.max : max;
  var x = function (value) { return api.coord([Math.max(0, Math.min(value, top)) * max / top, 0])[0]; };
  var parts = [
    { type: "rect", shape: { x: 0, y: at.top, width: width, height: at.height }, style: { fill: "rgba(0,0,0,0)" } },
    { type: "text", style: { text: at.row.label, x: layout.narrow ? 10 : layout.left - 14, y: layout.narrow ? at.top + 3 : y, fill: ink, align: layout.narrow ? "left" : "right", verticalAlign: layout.narrow ? "top" : "middle", lineHeight: 16, font: "500 13px " + fontFamily, width: layout.narrow ? width - 20 : undefined, overflow: "break" } },
    { type: "text", style: { text: layout.figures[at.row.case], x: width - 2, y: y, fill: ink, align: "right", verticalAlign: "middle", font: "12px " + fontFamily } }
  ];
  if (rate.low !== null) {
    var stroke = { stroke: colour, lineWidth: 2, lineDash: weak ? [4, 3] : null, fill: null };
    var low = x(rate.low), high = x(rate.high);
    parts.push({ type: "line", shape: { x1: low, x2: high, y1: y, y2: y }, style: stroke });
    parts.push(whiskerCap(low, y, colour));
    parts.push(rate.high > top ? arrow(high, y, colour) : whiskerCap(high, y, colour));
  }
  at.row.trials.forEach(function (trial) {
    if (trial.rate <= top) parts.push(trialDot(x(trial.rate), y + 9, colour, trial.used));
  });
  parts.push(rankingPoint(at, x(rate.value), y, colour));
  return { type: "group", children: parts };
}

/** A trial below the whiskers; hollow where it is not in the figure. */
function trialDot(x, y, colour, used) {
  return { type: "circle", shape: { cx: x, cy: y, r: 2.4 }, style: { fill: used ? colour : variable("bg"), stroke: used ? null : colour, lineWidth: 1, opacity: 0.75 } };
}

function whiskerCap(x, y, colour) {
  return { type: "line", shape: { x1: x, x2: x, y1: y - 5, y2: y + 5 }, style: { stroke: colour, lineWidth: 2 } };
}

/** The tip of what goes on beyond the scale. */
function arrow(x, y, colour) {
  return { type: "polygon", shape: { points: [[x - 9, y - 5], [x, y], [x - 9, y + 5]] }, style: { fill: colour } };
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
