"use strict";
/* Draws the timeline of this page. Spans are stored as columns; those of a row do not overlap and
   are sorted. Drawing bisects a row for each pixel, so its cost depends on the size of the window,
   not on the number of spans. Text from a trace reaches the page only by textContent or fillText. */
(() => {
const $ = id => document.getElementById(id);
const ROW = 18, HEAD = 24, AXIS = 22, GAP = 6, COUNTER = 34;
const view = $("view"), overview = $("overview"), tip = $("tip");
const now = {from: 0, to: 1, top: 0, span: -1, word: "", mouse: null, drag: null};
let total = 1, gutter = 230, head, start, dur, name, flag, rowOf, lanes = [], tracks = [], tall = 0;
let names = [], cats = [], fills = [], match = null, matches = [], counters = [], arrows, style = {}, bins, binsFor = 0;
let rows = [], args = null, pending = false;

/* ---- data ---- */

async function bytes(id) {
	const text = atob($(id).textContent), packed = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
	$(id).textContent = "";
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}
function reader(data) {
	let at = 0;
	const bits = new DataView(data.buffer);
	return {
		number() {
			let v = 0, scale = 1, b;
			do {
				b = data[at++];
				v += (b & 127) * scale;
				scale *= 128;
			} while (b & 128);
			return v;
		},
		double() { at += 8; return bits.getFloat64(at - 8, true); },
		text(n) { at += n; return new TextDecoder().decode(data.subarray(at - n, at)); },
		skip(n) { at += n; },
		get at() { return at; },
		set at(v) { at = v; },
	};
}
function readLane(r, lane, next) {
	lane.spans = [];
	for (const n of lane.rows) {
		const row = {from: next, to: next + n, lane, depth: lane.spans.length};
		for (let t = 0; next < row.to; next++) {
			t += r.number();
			start[next] = t;
			dur[next] = r.number();
			const id = r.number();
			name[next] = Math.floor(id / 2);
			flag[next] = id % 2;
			rowOf[next] = rows.length;
		}
		rows.push(row);
		lane.spans.push(row);
	}
	lane.at = new Float64Array(lane.instants);
	lane.what = new Uint32Array(lane.instants);
	for (let i = 0, t = 0; i < lane.instants; i++) {
		lane.at[i] = t += r.number();
		lane.what[i] = r.number();
	}
	return next;
}
function readAll(data) {
	const r = reader(data), n = head.spans, byNumber = [];
	start = new Float64Array(n);
	dur = new Float64Array(n);
	name = new Uint32Array(n);
	flag = new Uint8Array(n);
	rowOf = new Uint32Array(n);
	for (const p of head.processes)
		for (const t of p.threads) {
			byNumber[t.lane] = t;
			t.process = p;
			t.label = t.name && t.name !== t.tid ? t.name + (t.tid ? " (" + t.tid + ")" : "") : "thread " + (t.tid || "?");
		}
	let next = 0;
	for (const t of byNumber) if (t) next = readLane(r, t, next);
	for (const x of head.extras) {
		x.process = head.processes[x.process];
		x.label = (x.name || "async") + " (async)";
		next = readLane(r, x, next);
	}
	for (const c of head.counters) {
		c.process = head.processes[c.process];
		c.label = names[c.name] + (c.series && c.series !== "value" ? " " + c.series : "");
		c.at = new Float64Array(c.n);
		c.value = new Float64Array(c.n);
		c.most = 0;
		c.least = 0;
		for (let i = 0, t = 0; i < c.n; i++) {
			c.at[i] = t += r.number();
			const v = c.value[i] = r.double();
			c.most = Math.max(c.most, v);
			c.least = Math.min(c.least, v);
		}
	}
	arrows = {n: head.arrows, lane: [new Uint32Array(head.arrows), new Uint32Array(head.arrows)],
		at: [new Float64Array(head.arrows), new Float64Array(head.arrows)],
		span: [new Int32Array(head.arrows).fill(-2), new Int32Array(head.arrows).fill(-2)]};
	for (let i = 0; i < arrows.n; i++)
		for (const e of [0, 1]) {
			arrows.lane[e][i] = r.number();
			arrows.at[e][i] = r.number();
		}
	lanes = byNumber;
}
/* Returns the text of a span's arguments, which is decoded on first use. */
async function argsOf(i) {
	if (!args) {
		const data = await bytes("args"), r = reader(data);
		args = {data, at: new Float64Array(head.spans + 1)};
		for (let k = 0; k < head.spans; k++) {
			args.at[k] = r.at;
			r.skip(r.number());
		}
	}
	const r = reader(args.data);
	r.at = args.at[i];
	return r.text(r.number());
}

/* ---- tracks ---- */

function layout() {
	let y = 0;
	tracks = [];
	const push = (t, height) => { tracks.push(Object.assign(t, {y, height})); y += height; };
	for (const p of head.processes) {
		const threads = p.threads.filter(t => t.spans.length || t.instants);
		const extras = head.extras.filter(x => x.process === p);
		const own = head.counters.filter(c => c.process === p && c.n);
		if (!threads.length && !extras.length && !own.length) continue;
		p.shown = !p.closed;
		push({kind: "process", process: p, label: p.name}, HEAD);
		for (const c of own) {
			c.shown = p.shown;
			if (p.shown) push({kind: "counter", counter: c, label: c.label}, COUNTER);
		}
		for (const lane of [...threads, ...extras]) {
			lane.track = null;
			if (!p.shown) continue;
			lane.track = {kind: "lane", lane, label: lane.label};
			push(lane.track, Math.max(1, lane.spans.length) * ROW + GAP);
		}
	}
	tall = y;
}

/* ---- looking for spans ---- */

/* Returns the first span of the row, from i on, that ends after t. */
function endsAfter(i, to, t) {
	let step = 1, low = i;
	while (low + step < to && start[low + step] + dur[low + step] <= t) {
		low += step;
		step *= 2;
	}
	let high = Math.min(to, low + step);
	if (low < to && start[low] + dur[low] > t) return low;
	while (low + 1 < high) {
		const mid = (low + high) >> 1;
		if (start[mid] + dur[mid] <= t) low = mid; else high = mid;
	}
	return high;
}
function firstAt(list, t) {
	let low = 0, high = list.length;
	while (low < high) {
		const mid = (low + high) >> 1;
		if (list[mid] < t) low = mid + 1; else high = mid;
	}
	return low;
}
/* Returns the innermost span of a lane at time t, or -1. */
function spanAt(lane, t) {
	for (let d = lane.spans.length; d--;) {
		const row = lane.spans[d];
		const i = row.from < row.to ? endsAfter(row.from, row.to, t) : row.to;
		if (i < row.to && start[i] <= t) return i;
		if (i > row.from && start[i - 1] + dur[i - 1] === t) return i - 1;
	}
	return -1;
}
function arrowSpan(i, e) {
	const lane = lanes[arrows.lane[e][i]];
	if (arrows.span[e][i] === -2) arrows.span[e][i] = lane ? spanAt(lane, arrows.at[e][i]) : -1;
	return arrows.span[e][i];
}

/* ---- words ---- */

function time(ns, digits = 4) {
	const a = Math.abs(ns);
	const [unit, scale] = a < 1e3 ? ["ns", 1] : a < 1e6 ? ["µs", 1e3] : a < 1e9 ? ["ms", 1e6] : ["s", 1e9];
	return (unit === "ns" ? String(Math.round(ns)) : Number((ns / scale).toPrecision(digits)).toString()) + " " + unit;
}
const count = (n, one, many) => n.toLocaleString("en-US") + " " + (n === 1 ? one : many || one + "s");
function amount(v) {
	return Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(2) : Number(v.toPrecision(5)).toString();
}

/* ---- drawing ---- */

function readStyle() {
	const s = getComputedStyle(document.documentElement), get = k => s.getPropertyValue("--" + k).trim();
	for (const k of ["page", "card", "ink", "soft", "line", "grid", "head", "accent", "arrow", "area", "pick"]) style[k] = get(k);
	style.spanInk = get("span-ink");
	fills = names.map(n => {
		let h = 2166136261;
		for (let i = 0; i < n.length; i++) h = Math.imul(h ^ n.charCodeAt(i), 16777619);
		return "hsl(" + ((h >>> 0) % 36) * 10 + " " + get("span-s") + " " + get("span-l") + ")";
	});
}
function size(canvas) {
	const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
	if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
		canvas.width = Math.round(w * ratio);
		canvas.height = Math.round(h * ratio);
	}
	const c = canvas.getContext("2d");
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	c.font = "12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
	c.textBaseline = "middle";
	return [c, w, h];
}
/* Truncates the text to fit. Letters have similar widths, so a guess comes first. */
function fit(c, text, width) {
	const most = Math.floor(width / 5);
	let s = text.length > most ? text.slice(0, Math.max(most, 0)) : text;
	if (c.measureText(s).width <= width && s.length === text.length) return s;
	while (s && c.measureText(s + "…").width > width) s = s.slice(0, -Math.max(1, Math.ceil(s.length / 12)));
	return s ? s + "…" : "";
}
function stepOf(span, most) {
	const raw = span / most, power = 10 ** Math.floor(Math.log10(raw));
	for (const m of [1, 2, 5, 10]) if (m * power >= raw) return m * power;
	return 10 * power;
}
function drawAxis(c, w, h, k) {
	const step = Math.max(1, stepOf(now.to - now.from, Math.max(2, (w - gutter) / 110)));
	const digits = Math.min(15, Math.max(3, Math.ceil(Math.log10(Math.max(1, now.to) / step)) + 2));
	c.fillStyle = style.head;
	c.fillRect(0, 0, w, AXIS);
	c.textAlign = "left";
	for (let t = Math.ceil(now.from / step) * step; t <= now.to; t += step) {
		const x = Math.round(gutter + (t - now.from) * k) + 0.5;
		c.strokeStyle = style.grid;
		c.beginPath();
		c.moveTo(x, AXIS);
		c.lineTo(x, h);
		c.stroke();
		c.fillStyle = style.soft;
		c.fillText(time(t, digits), x + 4, AXIS / 2);
	}
}
function drawRow(c, row, y, w, k) {
	const shift = gutter - now.from * k;
	let i = row.from < row.to ? endsAfter(row.from, row.to, now.from) : row.to;
	while (i < row.to && start[i] < now.to) {
		const x0 = Math.max(gutter, start[i] * k + shift), x1 = Math.min(w, (start[i] + dur[i]) * k + shift);
		const wide = x1 - x0 >= 1.5, px = wide ? x0 : Math.floor(x0);
		if (match) c.globalAlpha = match[name[i]] ? 1 : 0.22;
		c.fillStyle = fills[name[i]];
		c.fillRect(px, y, wide ? Math.max(1, x1 - x0 - 0.5) : 1, ROW - 2);
		if (flag[i] && wide) {
			c.fillStyle = style.arrow;
			c.fillRect(x1 - 3, y, 3, ROW - 2);
		}
		if (x1 - x0 > 28) {
			c.fillStyle = style.spanInk;
			c.fillText(fit(c, names[name[i]], x1 - x0 - 8), x0 + 4, y + ROW / 2 - 0.5);
		}
		i = wide ? i + 1 : i + 1 < row.to ? endsAfter(i + 1, row.to, now.from + (px + 1 - gutter) / k) : row.to;
	}
	c.globalAlpha = 1;
}
function drawInstants(c, lane, y, w, k) {
	let before = -9;
	c.fillStyle = style.ink;
	for (let i = firstAt(lane.at, now.from); i < lane.at.length && lane.at[i] <= now.to; i++) {
		const x = gutter + (lane.at[i] - now.from) * k;
		if (x - before < 2) continue;
		before = x;
		if (match) c.globalAlpha = match[lane.what[i]] ? 1 : 0.22;
		c.beginPath();
		c.moveTo(x, y);
		c.lineTo(x + 4, y + 7);
		c.lineTo(x - 4, y + 7);
		c.fill();
	}
	c.globalAlpha = 1;
}
function drawCounter(c, t, y, w, k) {
	const n = t.counter, range = n.most - n.least || 1, room = COUNTER - 8, base = y + 4 + room;
	const at = v => base - (v - n.least) / range * room;
	let i = Math.max(0, firstAt(n.at, now.from) - 1), x = gutter;
	c.beginPath();
	c.moveTo(gutter, base);
	while (i < n.n && n.at[i] <= now.to) {
		x = Math.max(gutter, gutter + (n.at[i] - now.from) * k);
		let most = n.value[i], last = i;
		const limit = now.from + (Math.floor(x) + 1 - gutter) / k;
		while (last + 1 < n.n && n.at[last + 1] < limit) most = Math.max(most, n.value[++last]);
		c.lineTo(x, at(i ? n.value[i - 1] : n.least));
		c.lineTo(x, at(most));
		if (most !== n.value[last]) c.lineTo(x, at(n.value[last]));
		i = last + 1;
	}
	if (i && i <= n.n) c.lineTo(i < n.n ? w : x, at(n.value[i - 1]));
	c.lineTo(i < n.n ? w : x, base);
	c.closePath();
	c.globalAlpha = 0.25;
	c.fillStyle = style.area;
	c.fill();
	c.globalAlpha = 1;
	c.strokeStyle = style.area;
	c.stroke();
}
function place(i, e, k, h) {
	const s = arrowSpan(i, e), lane = lanes[arrows.lane[e][i]];
	if (!lane || !lane.track) return null;
	const depth = s < 0 ? 0 : rows[rowOf[s]].depth;
	return [gutter + (arrows.at[e][i] - now.from) * k, AXIS + lane.track.y - now.top + depth * ROW + ROW / 2];
}
function drawArrow(c, i, k, w, h, strong) {
	const a = place(i, 0, k, h), b = place(i, 1, k, h);
	if (!a || !b) return;
	const bend = Math.max(18, Math.min(90, Math.abs(b[0] - a[0]) / 2));
	c.globalAlpha = strong ? 1 : 0.55;
	c.lineWidth = strong ? 2 : 1;
	c.strokeStyle = c.fillStyle = style.arrow;
	c.beginPath();
	c.moveTo(...a);
	c.bezierCurveTo(a[0] + bend, a[1], b[0] - bend, b[1], b[0] - 4, b[1]);
	c.stroke();
	c.beginPath();
	c.moveTo(b[0], b[1]);
	c.lineTo(b[0] - 7, b[1] - 4);
	c.lineTo(b[0] - 7, b[1] + 4);
	c.fill();
	c.globalAlpha = 1;
	c.lineWidth = 1;
}
/* Draws all arrows in view unless there are too many; always draws those of the selected span. */
function drawArrows(c, w, h, k) {
	const seen = [], own = [], most = w / 8;
	for (let i = 0; i < arrows.n; i++) {
		if (arrows.at[1][i] < now.from || arrows.at[0][i] > now.to) continue;
		if (now.span >= 0 && (arrowSpan(i, 0) === now.span || arrowSpan(i, 1) === now.span)) own.push(i);
		else if (seen.length <= most) seen.push(i);
	}
	if (seen.length <= most) for (const i of seen) drawArrow(c, i, k, w, h, false);
	for (const i of own) drawArrow(c, i, k, w, h, true);
}
/* Draws matches on top of other spans that share a pixel with them. */
function drawMatches(c, w, h, k) {
	const room = view.clientHeight;
	let i = 0, high = matches.length, before = -1, rowBefore = -1;
	while (i < high) {
		const mid = (i + high) >> 1;
		if (start[matches[mid]] < now.from) i = mid + 1; else high = mid;
	}
	for (; i < matches.length && start[matches[i]] <= now.to; i++) {
		const m = matches[i], row = rows[rowOf[m]];
		if (dur[m] * k >= 1.5 || !row.lane.track) continue;
		const x = Math.floor(gutter + (start[m] - now.from) * k), y = AXIS + row.lane.track.y - now.top + row.depth * ROW + 1;
		if (y < AXIS - ROW || y > room || (x === before && rowOf[m] === rowBefore)) continue;
		before = x;
		rowBefore = rowOf[m];
		c.fillStyle = style.accent;
		c.fillRect(x, y, 2, ROW - 2);
	}
}
function drawPick(c, k) {
	const row = now.span >= 0 ? rows[rowOf[now.span]] : null;
	if (!row || !row.lane.track) return;
	const x = gutter + (start[now.span] - now.from) * k, width = Math.max(2, dur[now.span] * k);
	const x0 = Math.max(gutter - 4, x), x1 = Math.min(view.clientWidth + 4, x + width);
	if (x1 <= x0) return;
	c.strokeStyle = style.pick;
	c.lineWidth = 2;
	c.strokeRect(x0, AXIS + row.lane.track.y - now.top + row.depth * ROW, x1 - x0, ROW - 2);
	c.lineWidth = 1;
}
function drawTrack(c, t, w, k) {
	const y = AXIS + t.y - now.top;
	if (t.kind === "process") {
		c.fillStyle = style.head;
		c.fillRect(0, y, w, t.height - 1);
		return;
	}
	c.strokeStyle = style.line;
	c.beginPath();
	c.moveTo(0, y + t.height - 0.5);
	c.lineTo(w, y + t.height - 0.5);
	c.stroke();
	if (t.kind === "counter") {
		drawCounter(c, t, y, w, k);
		return;
	}
	for (const row of t.lane.spans) {
		const at = y + row.depth * ROW + 1;
		if (at + ROW > AXIS && at < view.clientHeight) drawRow(c, row, at, w, k);
	}
	drawInstants(c, t.lane, y, w, k);
}
function drawLabel(c, t, w) {
	const y = AXIS + t.y - now.top;
	c.textAlign = "left";
	if (t.kind === "process") {
		c.fillStyle = style.ink;
		c.font = "600 " + c.font;
		c.fillText((t.process.closed ? "▸ " : "▾ ") + fit(c, t.label, w - 40), 8, y + t.height / 2);
		c.font = c.font.replace("600 ", "");
		return;
	}
	c.fillStyle = t.kind === "counter" ? style.area : style.soft;
	c.fillText(fit(c, t.label, gutter - 24), 16, y + Math.min(t.height - 4, ROW) / 2 + 1);
	if (t.kind === "counter") {
		c.fillStyle = style.soft;
		c.fillText("max " + amount(t.counter.most), 16, y + COUNTER - 9);
	}
}
function draw() {
	pending = false;
	const [c, w, h] = size(view);
	gutter = Math.min(230, Math.round(w * 0.28));
	const k = (w - gutter) / (now.to - now.from);
	now.top = Math.max(0, Math.min(now.top, tall - (h - AXIS)));
	c.clearRect(0, 0, w, h);
	drawAxis(c, w, h, k);
	c.save();
	c.beginPath();
	c.rect(0, AXIS, w, h - AXIS);
	c.clip();
	const seen = tracks.filter(t => t.y + t.height > now.top && t.y < now.top + h - AXIS);
	for (const t of seen) drawTrack(c, t, w, k);
	c.save();
	c.beginPath();
	c.rect(gutter, AXIS, w - gutter, h - AXIS);
	c.clip();
	drawMatches(c, w, h, k);
	drawArrows(c, w, h, k);
	drawPick(c, k);
	c.restore();
	c.fillStyle = style.card;
	for (const t of seen) if (t.kind !== "process") c.fillRect(0, AXIS + t.y - now.top, gutter - 1, t.height - 1);
	c.fillStyle = style.line;
	c.fillRect(gutter - 1, AXIS, 1, h);
	for (const t of seen) drawLabel(c, t, w);
	c.restore();
	if (now.drag && now.drag.range) {
		c.globalAlpha = 0.2;
		c.fillStyle = style.accent;
		c.fillRect(Math.min(now.drag.x, now.drag.now), AXIS, Math.abs(now.drag.now - now.drag.x), h);
		c.globalAlpha = 1;
	}
	drawOverview();
}
/* Draws how many threads are in a span, over the whole run. */
function drawOverview() {
	const [c, w, h] = size(overview), room = w - gutter;
	if (binsFor !== room && room > 0) {
		bins = new Float32Array(room + 1);
		binsFor = room;
		for (const row of rows) {
			if (row.depth) continue;
			for (let i = row.from; i < row.to; i++) {
				const a = start[i] / total * room, b = (start[i] + dur[i]) / total * room;
				const first = Math.floor(a), last = Math.min(room, Math.floor(b));
				if (first === last) bins[first] += b - a;
				else {
					bins[first] += first + 1 - a;
					for (let x = first + 1; x < last; x++) bins[x]++;
					bins[last] += b - last;
				}
			}
		}
	}
	c.clearRect(0, 0, w, h);
	c.fillStyle = style.soft;
	c.textAlign = "left";
	c.fillText(fit(c, "busy threads", gutter - 20), 16, h / 2);
	let most = 1;
	for (const b of bins || []) most = Math.max(most, b);
	c.fillStyle = style.area;
	for (let x = 0; bins && x < room; x++) c.fillRect(gutter + x, h - 3 - bins[x] / most * (h - 8), 1, bins[x] / most * (h - 8));
	const a = gutter + now.from / total * room, b = gutter + now.to / total * room;
	c.fillStyle = style.page;
	c.globalAlpha = 0.7;
	c.fillRect(gutter, 0, a - gutter, h);
	c.fillRect(b, 0, w - b, h);
	c.globalAlpha = 1;
	c.strokeStyle = style.accent;
	c.lineWidth = 2;
	c.strokeRect(a, 1, Math.max(2, b - a), h - 2);
	c.lineWidth = 1;
}
function redraw() {
	if (!pending) requestAnimationFrame(draw);
	pending = true;
}

/* ---- moving ---- */

function show(from, to) {
	const span = Math.min(total, Math.max(20, to - from)), spare = total - span;
	const mid = (from + to) / 2;
	now.from = Math.max(0, Math.min(spare, mid - span / 2));
	now.to = now.from + span;
	redraw();
}
/* Keys zoom around the selected span if it is in view, else around the middle of the view. */
function middle() {
	const at = now.span >= 0 ? start[now.span] + dur[now.span] / 2 : -1;
	return at >= now.from && at <= now.to ? at : (now.from + now.to) / 2;
}
function zoom(factor, at = middle()) {
	const left = (at - now.from) * factor, right = (now.to - at) * factor;
	if (left + right >= 20 || factor > 1) show(at - left, at + right);
}
function move(part) {
	const d = (now.to - now.from) * part;
	show(now.from + d, now.to + d);
}
function scroll(px) {
	now.top += px;
	redraw();
}
function reveal(i) {
	const row = rows[rowOf[i]];
	if (row.lane.process.closed) {
		row.lane.process.closed = false;
		layout();
	}
	const y = row.lane.track.y + row.depth * ROW, room = view.clientHeight - AXIS;
	if (y < now.top + HEAD || y + ROW > now.top + room) now.top = y - room / 3;
	if (start[i] > now.to || start[i] + dur[i] < now.from || dur[i] * 400 < now.to - now.from) {
		const span = Math.max(dur[i] * 12, 1000, Math.min(now.to - now.from, dur[i] * 400));
		show(start[i] + dur[i] / 2 - span / 2, start[i] + dur[i] / 2 + span / 2);
	}
	redraw();
}

/* ---- the selected span ---- */

function element(tag, text, parent) {
	const e = document.createElement(tag);
	if (text !== undefined) e.textContent = text;
	if (parent) parent.append(e);
	return e;
}
function table(pairs, parent) {
	const t = element("table", undefined, parent);
	for (const [key, value] of pairs) {
		const tr = element("tr", undefined, t);
		element("th", key, tr).scope = "row";
		element("td", value, tr);
	}
	return t;
}
async function select(i, far) {
	now.span = i;
	const box = $("details");
	box.replaceChildren();
	if (i < 0) {
		element("p", "Click a span to see it here.", box).className = "soft";
		redraw();
		return;
	}
	if (far) reveal(i);
	redraw();
	const row = rows[rowOf[i]], side = [];
	element("h2", names[name[i]], box);
	const columns = element("div", undefined, box);
	columns.className = "columns";
	table([["category", cats[name[i]] || "-"], ["begins at", time(start[i], 12)],
		["takes", flag[i] ? "never ended; to the last event of its thread " + time(dur[i], 9) : time(dur[i], 9)],
		["thread", row.lane.label], ["process", row.lane.process.name]], columns);
	const links = element("div", undefined, columns);
	for (let a = 0; a < arrows.n && side.length < 12; a++)
		for (const e of [0, 1]) if (arrowSpan(a, e) === i && arrowSpan(a, 1 - e) >= 0) side.push([arrowSpan(a, 1 - e), e]);
	for (const [other, e] of side) {
		const b = element("button", (e ? "← from " : "→ to ") + names[name[other]], links);
		b.type = "button";
		b.addEventListener("click", () => select(other, true));
	}
	const text = await argsOf(i);
	if (now.span !== i || !text) return;
	let pairs;
	try {
		const all = JSON.parse(text);
		pairs = Object.entries(all).filter(([key]) => key !== "hhash" && !(key === "fhash" && all.file)).map(([key, v]) => [key, typeof v === "string" ? v : JSON.stringify(v)]);
	} catch {
		pairs = [["arguments", text]];
	}
	table(pairs, columns);
}
function beside(d) {
	if (now.span < 0) return;
	const row = rows[rowOf[now.span]], i = now.span + d;
	if (i >= row.from && i < row.to) select(i, true);
}
function aroundOrInside(d) {
	const row = now.span >= 0 ? rows[rowOf[now.span]] : null, other = row && row.lane.spans[row.depth + d];
	if (!other || other.from === other.to) return;
	const i = endsAfter(other.from, other.to, start[now.span]);
	if (i < other.to && (d < 0 ? start[i] <= start[now.span] : start[i] < start[now.span] + dur[now.span])) select(i, true);
}

/* ---- searching ---- */

function search(word) {
	now.word = word.trim().toLowerCase();
	match = null;
	matches = [];
	$("found").textContent = "";
	if (now.word) {
		match = new Uint8Array(names.length);
		names.forEach((n, i) => { match[i] = n.toLowerCase().includes(now.word) || cats[i].toLowerCase().includes(now.word); });
		let sum = 0;
		for (let i = 0; i < name.length; i++)
			if (match[name[i]]) {
				matches.push(i);
				sum += dur[i];
			}
		matches.sort((a, b) => start[a] - start[b] || a - b);
		$("found").textContent = matches.length ? count(matches.length, "span") + ", " + time(sum) : "no span";
	}
	redraw();
}
function step(d) {
	if (!matches.length) return;
	const at = matches.indexOf(now.span);
	let next;
	if (at >= 0) next = (at + d + matches.length) % matches.length;
	else {
		next = matches.findIndex(i => start[i] >= now.from);
		next = next < 0 ? 0 : next;
	}
	$("found").textContent = (next + 1).toLocaleString("en-US") + " of " + count(matches.length, "span");
	select(matches[next], true);
}

/* ---- the mouse ---- */

const timeAt = x => now.from + (x - gutter) / (view.clientWidth - gutter) * (now.to - now.from);
function trackAt(y) {
	const at = y - AXIS + now.top;
	return y < AXIS ? undefined : tracks.find(t => at >= t.y && at < t.y + t.height);
}
function spanBelow(x, y) {
	const t = trackAt(y);
	if (!t || t.kind !== "lane" || x < gutter) return -1;
	const row = t.lane.spans[Math.floor((y - AXIS + now.top - t.y) / ROW)];
	if (!row || row.from === row.to) return -1;
	const at = timeAt(x), pixel = (now.to - now.from) / (view.clientWidth - gutter);
	const i = endsAfter(row.from, row.to, at - pixel);
	return i < row.to && start[i] <= at + pixel ? i : -1;
}
function tell(x, y) {
	const i = spanBelow(x, y), t = trackAt(y);
	let text = "";
	if (i >= 0) text = names[name[i]] + "  " + time(dur[i]);
	else if (t && t.kind === "counter" && x >= gutter) {
		const n = firstAt(t.counter.at, timeAt(x));
		if (n) text = t.label + ": " + amount(t.counter.value[n - 1]);
	} else if (t && t.kind === "lane" && x >= gutter) {
		const n = firstAt(t.lane.at, timeAt(x - 4));
		if (n < t.lane.at.length && t.lane.at[n] <= timeAt(x + 4)) text = names[t.lane.what[n]] + "  at " + time(t.lane.at[n], 9);
	} else if (t && x < gutter) text = t.label;
	tip.hidden = !text;
	tip.textContent = text;
	const room = view.clientWidth;
	tip.style.left = Math.max(0, Math.min(x + 14, room - tip.offsetWidth - 4)) + "px";
	tip.style.top = Math.min(y + 16, view.clientHeight - 30) + "px";
}
view.addEventListener("wheel", e => {
	e.preventDefault();
	const unit = e.deltaMode ? 40 : 1, d = (e.deltaY || e.deltaX) * unit;
	if (e.ctrlKey || e.metaKey) zoom(Math.exp(d / 300), timeAt(Math.max(gutter, e.offsetX)));
	else if (e.shiftKey) move(d / (view.clientWidth - gutter));
	else {
		if (e.deltaX) move(e.deltaX * unit / (view.clientWidth - gutter));
		scroll(e.deltaY * unit);
	}
}, {passive: false});
view.addEventListener("pointerdown", e => {
	view.setPointerCapture(e.pointerId);
	now.drag = {x: e.offsetX, y: e.offsetY, from: now.from, to: now.to, top: now.top, moved: false, range: e.shiftKey, now: e.offsetX};
});
view.addEventListener("pointermove", e => {
	const d = now.drag;
	if (!d) {
		tell(e.offsetX, e.offsetY);
		return;
	}
	d.moved = d.moved || Math.abs(e.offsetX - d.x) + Math.abs(e.offsetY - d.y) > 3;
	d.now = e.offsetX;
	if (d.moved && !d.range) {
		const by = (d.x - e.offsetX) / (view.clientWidth - gutter) * (d.to - d.from);
		now.top = d.top + d.y - e.offsetY;
		show(d.from + by, d.to + by);
	}
	redraw();
});
view.addEventListener("pointerup", e => {
	const d = now.drag, t = trackAt(e.offsetY);
	now.drag = null;
	if (d && d.range && d.moved) {
		const a = timeAt(Math.max(gutter, Math.min(d.x, d.now))), b = timeAt(Math.max(d.x, d.now));
		show(a, b);
	} else if (d && !d.moved && t && t.kind === "process") {
		t.process.closed = !t.process.closed;
		layout();
	} else if (d && !d.moved) select(spanBelow(e.offsetX, e.offsetY), false);
	redraw();
});
view.addEventListener("pointerleave", () => { tip.hidden = true; });
view.addEventListener("dblclick", () => fitPick());
function fitPick() {
	const i = now.span;
	if (i >= 0) show(start[i] - dur[i] * 0.1, start[i] + dur[i] * 1.1);
}
function overviewTo(e) {
	const at = (e.offsetX - gutter) / (overview.clientWidth - gutter) * total, half = (now.to - now.from) / 2;
	show(at - half, at + half);
}
overview.addEventListener("pointerdown", e => {
	overview.setPointerCapture(e.pointerId);
	overviewTo(e);
});
overview.addEventListener("pointermove", e => { if (e.buttons) overviewTo(e); });

/* ---- keys ---- */

const keys = {
	w: () => zoom(0.7), s: () => zoom(1 / 0.7), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7),
	a: () => move(-0.2), d: () => move(0.2), ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1),
	ArrowUp: () => scroll(-2 * ROW), ArrowDown: () => scroll(2 * ROW),
	PageUp: () => scroll(-0.8 * view.clientHeight), PageDown: () => scroll(0.8 * view.clientHeight),
	Home: () => show(0, now.to - now.from), End: () => show(total - (now.to - now.from), total),
	"0": () => show(0, total), f: fitPick, n: () => step(1), p: () => step(-1),
	"[": () => beside(-1), "]": () => beside(1), "{": () => aroundOrInside(-1), "}": () => aroundOrInside(1),
	"/": () => { $("word").focus(); $("word").select(); }, "?": () => $("help").showModal(),
	c: () => {
		const any = head.processes.some(p => !p.closed);
		for (const p of head.processes) p.closed = any;
		layout();
		redraw();
	},
	Escape: () => { $("word").value = ""; search(""); select(-1); },
};
document.addEventListener("keydown", e => {
	if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
	if (e.target === $("word")) {
		if (e.key === "Escape") { keys.Escape(); view.focus(); }
		return;
	}
	if (e.target.tagName === "BUTTON" && (e.key === "Enter" || e.key === " ")) return;
	const f = keys[e.key] || keys[e.key.toLowerCase()];
	if (!f || !head) return;
	e.preventDefault();
	f();
});
let waiting = 0;
$("word").addEventListener("input", () => {
	clearTimeout(waiting);
	waiting = setTimeout(() => search($("word").value), 120);
});
$("search").addEventListener("submit", e => {
	e.preventDefault();
	clearTimeout(waiting);
	if ($("word").value.trim().toLowerCase() !== now.word) search($("word").value);
	step(1);
	if (matches.length) view.focus();
});
$("word").addEventListener("keydown", e => {
	if (e.key === "Enter" && e.shiftKey) { e.preventDefault(); step(-1); }
});
$("before").addEventListener("click", () => step(-1));
$("after").addEventListener("click", () => step(1));
$("whole").addEventListener("click", () => show(0, total));
$("keys").addEventListener("click", () => $("help").showModal());

/* ---- the beginning ---- */

function sayLeft() {
	const l = head.left, parts = [];
	if (l.spans) parts.push(count(l.spans, "span") + " shorter than " + time(l.shortest));
	if (l.instants) parts.push(count(l.instants, "instant"));
	if (l.counters) parts.push(count(l.counters, "value of counters", "values of counters"));
	if (l.flows) parts.push(count(l.flows, "flow"));
	if (l.args) parts.push("the arguments of " + count(l.args, "span"));
	$("left").hidden = !parts.length;
	$("left").textContent = "Not in this page: " + parts.join("; ") + ".";
}
async function main() {
	head = JSON.parse(new TextDecoder().decode(await bytes("head")));
	for (let i = 0; i < head.names.length; i += 2) {
		names.push(head.names[i]);
		cats.push(head.names[i + 1]);
	}
	total = Math.max(head.total, 1);
	readAll(await bytes("columns"));
	now.to = total;
	const threads = head.processes.reduce((n, p) => n + p.threads.length, 0);
	$("facts").textContent = [count(head.spans, "span"), count(head.processes.length, "process", "processes"),
		count(threads, "thread"), count(head.files, "file"), time(head.total)].join("  ·  ");
	sayLeft();
	readStyle();
	layout();
	draw();
	new ResizeObserver(redraw).observe(view);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readStyle(); redraw(); });
	view.focus({preventScroll: true});
	document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
main().catch(e => {
	$("facts").textContent = "This page cannot be shown: " + e.message +
		(typeof DecompressionStream === "undefined" ? " (the browser is older than 2023)" : "");
	document.documentElement.dataset.ready = "failed";
});
})();
