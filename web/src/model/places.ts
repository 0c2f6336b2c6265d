// Places of diagnostics in a text. The server counts columns and lengths in characters, a string and a text field in UTF-16 units.

export interface Place {
  line: number;
  column: number;
  length: number;
}

/** Where a place begins and ends in the text, in UTF-16 units; on the last line where the text has fewer. */
export function span(text: string, { line, column, length }: Place): [number, number] {
  let from = 0;
  for (let n = 1; n < line; n += 1) {
    const next = text.indexOf('\n', from);
    if (next < 0) break;
    from = next + 1;
  }
  const end = text.indexOf('\n', from);
  const chars = [...text.slice(from, end < 0 ? undefined : end)];
  const units = (count: number) => chars.slice(0, count).join('').length;
  return [from + units(column - 1), from + units(column - 1 + length)];
}
