// A modal dialog by the browser's own element, which keeps the focus inside and gives it back.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current!;
    const before = document.activeElement;
    element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // a browser closes it without a question where nobody used the page since the last one
    <dialog ref={dialog} aria-labelledby={heading} onClose={() => dialog.current && onClose()} onCancel={e => (e.preventDefault(), onClose())} onClick={e => e.target === dialog.current && onClose()}>
      <div class="dialog-body">
        <h2 id={heading}>{title}</h2>
        {children}
        <p class="actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
        </p>
      </div>
    </dialog>
  );
}
