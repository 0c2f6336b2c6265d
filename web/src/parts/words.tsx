// Small pieces that pages share: messages, commands to copy, bars, and the mark of an owner.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Refusal } from '../client';
import { isCommand } from '../model/format';
import { mark } from '../model/marks';

/** A message on its own line. What it is stands in words, not in its colour alone. */
export function Note({ kind = 'note', children, live = false }: { kind?: 'note' | 'warning' | 'error' | 'good'; children: ComponentChildren; live?: boolean }) {
  const word = { note: '', warning: 'Warning: ', error: 'Error: ', good: '' }[kind];
  return (
    <div class={`note ${kind}`} role={live ? (kind === 'error' ? 'alert' : 'status') : undefined}>
      {word && <b>{word}</b>}
      {children}
    </div>
  );
}

/** Why something was refused, in the server's words, with its hint as a command. */
export function Refused({ refusal, what }: { refusal: Refusal; what?: string }) {
  return (
    <Note kind="error" live>
      {what ? `${what}: ` : ''}
      {refusal.message}
      <Hint text={refusal.hint} />
    </Note>
  );
}

/** What helps, in the server's words: often a command, sometimes a sentence. */
export function Hint({ text }: { text: string | null | undefined }) {
  return text ? <div class="hint">Hint: {text}</div> : null;
}

/** The same, to be copied where it is a command. */
export function Advice({ text }: { text: string }) {
  return isCommand(text) ? <Command text={text} /> : <span>{text}</span>;
}

export function Command({ text, label = 'Copy the command' }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // without the permission the text can still be marked by hand
    }
  };
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`${label}: ${text}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}

/** Use against what is allotted: the bar is full at the allotment. Without one it has no end. */
export function Bar({ used, of, over = false }: { used: number | null; of: number | null; over?: boolean }) {
  const share = used != null && of ? Math.min(1, used / of) : 0;
  return (
    <span class={`bar${of == null ? ' open' : ''}${over || share > 0.95 ? ' full' : ''}`} aria-hidden="true">
      <i style={{ width: `${Math.round(share * 1000) / 10}%` }} />
    </span>
  );
}

/** The letter and colour of an owner, as on the map. */
export function Tag({ group }: { group: string }) {
  const { letter, colour } = mark(group);
  return (
    <span class="tag" style={{ background: `var(--owner-${colour})` }} aria-hidden="true">
      {letter}
    </span>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Busy({ children }: { children: ComponentChildren }) {
  return (
    <p class="empty" role="status">
      {children}
    </p>
  );
}

/** A list of CPUs that may break after its commas. */
export function CpuList({ text }: { text: string | null }) {
  if (!text) return <span>–</span>;
  return (
    <span class="set">
      {text.split(',').map((part, i) => (
        <>
          {i > 0 && ','}
          {i > 0 && <wbr />}
          {part}
        </>
      ))}
    </span>
  );
}
