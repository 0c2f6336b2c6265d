// A text field for layouts: line numbers, the places of diagnostics marked in the text, and a way to jump to one. The text stays the
// browser's own field, so that its undo, search and screen readers work as everywhere.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Schema } from '../client';
import { span } from '../model/places';

export interface EditorProps {
  value: string;
  onInput: (text: string) => void;
  onSubmit: () => void;
  diagnostics: readonly Schema['Diagnostic'][];
  label: string;
  describedBy?: string;
  readOnly?: boolean;
}

const LINE = 18;
/** Larger texts are edited without marks: laying them out twice would stall the page. */
export const MARKED = 200_000;

export function Editor(props: EditorProps) {
  const { value, diagnostics } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const [scroll, setScroll] = useState({ top: 0, left: 0, height: 400 });
  const lines = useMemo(() => count(value), [value]);
  const marks = useMemo(() => byLine(diagnostics), [diagnostics]);
  useEffect(() => {
    const look = () => field.current && setScroll(s => ({ ...s, height: field.current!.clientHeight }));
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(field.current!);
    return () => sizes.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(scroll.top / LINE) - 1);
  const last = Math.min(lines, first + Math.ceil(scroll.height / LINE) + 2);
  const text = useMemo(() => (value.length <= MARKED ? value.split('\n') : null), [value]);
  return (
    <div class="editor">
      <div class="gutter" aria-hidden="true">
        <div style={{ transform: `translateY(${first * LINE - scroll.top}px)` }}>
          {Array.from({ length: last - first }, (_, i) => {
            const worst = worstOf(marks.get(first + i + 1));
            return (
              <div key={first + i} class={worst ?? undefined}>
                {worst === 'error' ? '✕ ' : worst === 'warning' ? '! ' : ''}
                {first + i + 1}
              </div>
            );
          })}
        </div>
      </div>
      <div class="editor-text">
        {text && (
          <pre aria-hidden="true" class="marks" style={{ transform: `translate(${-scroll.left}px, ${first * LINE - scroll.top}px)` }}>
            {text.slice(first, last).map((line, i) => (
              <Marked key={first + i} line={line} marks={marks.get(first + i + 1)} />
            ))}
          </pre>
        )}
        <textarea
          ref={field}
          id="layout-text"
          value={value}
          wrap="off"
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          readOnly={props.readOnly}
          aria-label={props.label}
          aria-invalid={diagnostics.some(d => d.severity === 'error')}
          aria-describedby={props.describedBy}
          onInput={e => props.onInput(e.currentTarget.value)}
          onScroll={e => {
            const { scrollTop: top, scrollLeft: left } = e.currentTarget;
            setScroll(s => ({ ...s, top, left }));
          }}
          onKeyDown={e => {
            if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
            e.preventDefault();
            props.onSubmit();
          }}
        />
      </div>
    </div>
  );
}

/** Puts the cursor of the layout's field at a place of a diagnostic. */
export function jump(origin: Schema['Origin']): void {
  const field = document.querySelector<HTMLTextAreaElement>('#layout-text');
  if (!field) return;
  field.focus();
  field.setSelectionRange(...span(field.value, origin));
  field.scrollTop = Math.max(0, (origin.line - 4) * LINE);
}

function Marked({ line, marks }: { line: string; marks: Schema['Diagnostic'][] | undefined }) {
  const mark = marks?.[0];
  if (!mark?.origin) return <div>{line || ' '}</div>;
  const chars = [...line];
  const start = mark.origin.column - 1;
  const end = start + Math.max(1, mark.origin.length);
  return (
    <div>
      {chars.slice(0, start).join('')}
      <mark class={mark.severity}>{chars.slice(start, end).join('') || ' '}</mark>
      {chars.slice(end).join('')}
    </div>
  );
}

function count(text: string): number {
  let n = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) n += 1;
  return n;
}

function byLine(diagnostics: readonly Schema['Diagnostic'][]): Map<number, Schema['Diagnostic'][]> {
  const found = new Map<number, Schema['Diagnostic'][]>();
  for (const d of diagnostics) {
    if (d.origin) found.set(d.origin.line, [...(found.get(d.origin.line) ?? []), d]);
  }
  return found;
}

const worstOf = (some: Schema['Diagnostic'][] | undefined) => (some?.some(d => d.severity === 'error') ? 'error' : some ? 'warning' : null);

export function Diagnostics({ id, list, text }: { id: string; list: readonly Schema['Diagnostic'][]; text: string }) {
  const shown = list.slice(0, 100);
  return (
    <div id={id} class="diagnostics" role="status">
      {list.length === 0 && text.trim() !== '' && <p class="numbers">The checker finds no error.</p>}
      <ul class="plain">
        {shown.map((d, i) => (
          <li key={i} class={`diagnostic ${d.severity}`}>
            <b>{d.severity === 'error' ? 'Error' : 'Warning'}</b>
            {d.origin && (
              <button type="button" class="quiet" onClick={() => jump(d.origin!)}>
                line {d.origin.line}
              </button>
            )}{' '}
            {d.message}
            {d.hint && <small>{d.hint}</small>}
            {d.also.map(a => (
              <small key={a.message + a.origin.line}>
                line {a.origin.line}: {a.message}
              </small>
            ))}
          </li>
        ))}
      </ul>
      {list.length > shown.length && <p class="numbers">And {list.length - shown.length} more.</p>}
    </div>
  );
}
