// Lists of CPUs as the kernel writes them: "0-3,8,10-11".

export function parse(text: string | null | undefined): number[] {
  if (!text) return [];
  const found: number[] = [];
  for (const part of text.split(',')) {
    const [first, last] = part.split('-');
    const from = Number(first);
    const to = last === undefined ? from : Number(last);
    if (!Number.isInteger(from) || !Number.isInteger(to)) continue;
    for (let cpu = from; cpu <= to; cpu += 1) found.push(cpu);
  }
  return found;
}

export function write(cpus: readonly number[]): string {
  const sorted = [...cpus].sort((a, b) => a - b);
  const parts: string[] = [];
  let at = 0;
  while (at < sorted.length) {
    let end = at;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end]! + 1) end += 1;
    parts.push(end === at ? `${sorted[at]}` : `${sorted[at]}-${sorted[end]}`);
    at = end + 1;
  }
  return parts.join(',');
}
