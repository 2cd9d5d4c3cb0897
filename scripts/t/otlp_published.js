// SPDX-License-Identifier: BSD-3-Clause
// Decodes each line of OpenTelemetry files by OpenTelemetry's own definitions, as its npm package otlp-transformer carries them, encodes
// and decodes it as protobuf, and compares every value with the line.
//
//     otlp_published.js MODULES DIR     "traces=N metrics=N logs=N", or what differs, and exit 1
const fs = require('fs')
const path = require('path')

const [modules, dir] = process.argv.slice(2)
const {opentelemetry: {proto}} = require(path.join(modules, '@opentelemetry/otlp-transformer/build/src/generated/root.js'))
const kinds = {traces: proto.trace.v1.TracesData, metrics: proto.metrics.v1.MetricsData, logs: proto.logs.v1.LogsData}
const ids = new Set(['traceId', 'spanId', 'parentSpanId'])
const wide = new Set(['asInt', 'intValue', 'count', 'timeUnixNano', 'startTimeUnixNano', 'endTimeUnixNano', 'observedTimeUnixNano'])

// The file's form of identifiers is hexadecimal; that of proto3 JSON is base64.
function toProto(value, key) {
  if (Array.isArray(value)) return value.map((v) => toProto(v, key))
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, toProto(v, k)]))
  if (!ids.has(key)) return value
  if (!/^([0-9a-f]{16}|[0-9a-f]{32})?$/.test(value)) throw new Error(`${key} is ${value}`)
  return Buffer.from(value, 'hex').toString('base64')
}

// What the line says has to be there again, with nothing unknown; where a number of 64 bits stands as a string, it must.
function compare(line, decoded, where) {
  if (Array.isArray(line)) {
    if (!Array.isArray(decoded) || decoded.length !== line.length) throw new Error(`${where}: ${line.length} elements`)
    line.forEach((v, i) => compare(v, decoded[i], `${where}[${i}]`))
  } else if (line && typeof line === 'object') {
    for (const key of Object.keys(line)) {
      if (!decoded || !(key in decoded)) throw new Error(`${where}.${key} is not defined`)
      if (wide.has(key) && typeof line[key] !== 'string') throw new Error(`${where}.${key} is no string`)
      compare(line[key], decoded[key], `${where}.${key}`)
    }
  } else if (line !== decoded) {
    throw new Error(`${where} is ${JSON.stringify(line)}, and decoded ${JSON.stringify(decoded)}`)
  }
}

function fromProto(value, key) {
  if (Array.isArray(value)) return value.map((v) => fromProto(v, key))
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fromProto(v, k)]))
  return ids.has(key) ? Buffer.from(value, 'base64').toString('hex') : value
}

function check(kind, text, where) {
  const line = JSON.parse(text)
  const given = toProto(line)
  const message = kinds[kind].fromObject(given)
  const wrong = kinds[kind].verify(message)
  if (wrong) throw new Error(`${where}: ${wrong}`)
  const again = kinds[kind].decode(kinds[kind].encode(message).finish())
  compare(line, fromProto(kinds[kind].toObject(again, {longs: String, enums: Number, bytes: String, arrays: true, defaults: true})), where)
}

try {
  const counts = Object.keys(kinds).map((kind) => {
    const lines = fs.readFileSync(path.join(dir, `${kind}.jsonl`), 'utf8').split('\n')
    if (lines.pop() !== '') throw new Error(`${kind}.jsonl ends within a line`)
    lines.forEach((text, i) => check(kind, text, `${kind}.jsonl:${i + 1}`))
    return `${kind}=${lines.length}`
  })
  console.log(counts.join(' '))
} catch (error) {
  console.log(error.message)
  process.exit(1)
}
