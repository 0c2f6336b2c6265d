// Results and studies of the mock.
const base = { headline: null, planned: 24, runs: 24, complete: true, running: false, has_report: true };

export const results = (hostNow, now) => [
  { ...base, id: 'tour-now', name: 'tour', title: 'Two minutes of division', at_ms: Math.round(hostNow), runs: 5 + (Math.floor(now / 2000) % 15), complete: false, running: true, has_report: false },
  { ...base, id: 'memory-2026-11-25', name: 'memory', title: 'A limit of memory, and what it costs', at_ms: Math.round(hostNow - 864e5), headline: 'Reads per second fall by 34 % (31 to 37 %) under 400M.' },
  { ...base, id: 'quota-2026-11-24', name: 'quota', title: 'A quota against a CPU set of the same size', at_ms: Math.round(hostNow - 1728e5), headline: 'The quota costs 4.1 ms at the 99th percentile.', runs: 18, complete: false },
];

export const studies = [
  { name: 'aa', title: 'Is this machine quiet enough to compare anything?', seconds: 240, quick_seconds: 40, needs_cpus: 1, needs_nodes: 1, tools: [] },
  { name: 'tour', title: 'Two minutes of division', seconds: 120, quick_seconds: 60, needs_cpus: 2, needs_nodes: 1, tools: [] },
  { name: 'postgres', title: 'PostgreSQL under limits of memory', seconds: 3600, quick_seconds: 300, needs_cpus: 2, needs_nodes: 1, tools: ['postgresql', 'pgbench'] },
];

export const report =
  '<!doctype html><html lang="en"><head><title>Report</title><style>body{font:14px sans-serif;margin:1em}</style></head><body><h1>A limit of memory, and what it costs</h1><p>Reads per second fall by 34 %.</p></body></html>';
