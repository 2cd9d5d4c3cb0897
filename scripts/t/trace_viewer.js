// SPDX-License-Identifier: BSD-3-Clause
// What Chromium's own trace viewer makes of a timeline, beside what is in the file.
//
//     trace_viewer.js MODULES FILE     a line for each process as the viewer names it, "flight FROM TO COUNT" for its arrows between
//                                      processes, and in the end "same: ..." with sums; or what differs, and exit 1
const fs = require('fs')
const path = require('path')

const [modules, file] = process.argv.slice(2)
const text = fs.readFileSync(file, 'utf8')
const events = JSON.parse(text).traceEvents

// The viewer's own start wants Python 2 to find these directories.
function viewer() {
  const home = path.resolve(modules, 'traceviewer')
  require(path.join(home, 'catapult_build/node_bootstrap.js'))
  const parts = ['', 'third_party', 'third_party/jszip', 'third_party/gl-matrix/dist', 'third_party/d3']
  global.HTMLImportsLoader.addArrayToSourcePath(parts.map((part) => path.join(home, 'tracing', part)))
  for (const page of ['importer/import', 'model/model', 'extras/full_config']) global.HTMLImportsLoader.loadHTML(`/tracing/${page}.html`)
  return global.tr
}

function imported(tr) {
  const options = new tr.importer.ImportOptions()
  options.showImportWarnings = false
  options.pruneEmptyContainers = false
  const model = new tr.Model()
  new tr.importer.Import(model, options).importTraces([text])
  return model
}

const count = (of, test) => of.filter(test).length
const sum = (of, value) => of.reduce((n, each) => n + value(each), 0)
const fail = (what) => {
  console.log(what)
  process.exitCode = 1
}
const compare = (what, here, there) => here === there || fail(`${what}: the file has ${here}, the viewer ${there}`)

const model = imported(viewer())
for (const warning of model.importWarnings) fail(`warning: ${warning.message}`)

const order = (p) => p.sortIndex
const processes = model.getAllProcesses().sort((a, b) => order(a) - order(b))
const totals = {spans: 0, asynchronous: 0, values: 0}
for (const p of processes) {
  const own = events.filter((e) => e.pid === p.pid)
  const threads = Object.values(p.threads)
  const named = (name) => own.find((e) => e.ph === 'M' && e.name === name)
  const slices = threads.flatMap((t) => t.sliceGroup.slices)
  if (!p.name) fail(`${p.pid} has no name`)
  compare(`${p.pid}: its name`, named('process_name')?.args.name, p.name)
  compare(`${p.pid}: spans and instants`, count(own, (e) => e.ph === 'X' || (e.ph === 'i' && (e.s || 't') === 't')), slices.length)
  compare(`${p.pid}: asynchronous spans and instants`, count(own, (e) => 'bn'.includes(e.ph)), sum(threads, (t) => t.asyncSliceGroup.slices.length))
  compare(`${p.pid}: counters`, new Set(own.filter((e) => e.ph === 'C').map((e) => e.name)).size, Object.keys(p.counters).length)
  for (const t of threads) {
    const name = own.find((e) => e.ph === 'M' && e.name === 'thread_name' && e.tid === t.tid)?.args.name
    compare(`${p.pid}/${t.tid}: its name`, name, t.name)
    compare(`${p.pid}/${t.tid}: microseconds`, Math.round(sum(own.filter((e) => e.ph === 'X' && e.tid === t.tid), (e) => e.dur)),
      Math.round(sum(t.sliceGroup.slices, (s) => s.duration) * 1000))
  }
  totals.spans += slices.length
  totals.asynchronous += sum(threads, (t) => t.asyncSliceGroup.slices.length)
  totals.values += sum(Object.values(p.counters), (c) => c.timestamps.length)
  console.log(`process ${p.name}`)
}
compare('processes', new Set(events.map((e) => e.pid)).size, processes.length)
compare('flights', new Set(events.filter((e) => e.ph === 's').map((e) => `${e.cat} ${e.name} ${e.id}`)).size, model.flowEvents.length)

const arrows = {}
for (const flow of model.flowEvents) {
  if (!flow.startSlice || !flow.endSlice) fail(`a flight without a ${flow.startSlice ? 'end' : 'begin'}: ${flow.id}`)
  const where = (slice) => slice && slice.parentContainer.parent.name
  const arrow = `${flow.startSlice?.title} of ${where(flow.startSlice)} > ${flow.endSlice?.title} of ${where(flow.endSlice)}`
  arrows[arrow] = (arrows[arrow] || 0) + 1
}
for (const arrow of Object.keys(arrows).sort()) console.log(`flight ${arrow}: ${arrows[arrow]}`)
if (!process.exitCode)
  console.log(`same: ${processes.length} processes, ${totals.spans} spans, ${totals.asynchronous} asynchronous, ` +
    `${model.flowEvents.length} flights, ${totals.values} values of counters`)
