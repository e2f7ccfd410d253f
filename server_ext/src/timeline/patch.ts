// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Changes elements in place, so that focus, selection and open details survive.
 *
 * Only text nodes and attributes are written: no text ever becomes markup.
 */
export class Children {
  constructor(private readonly _parent: Element) {
    this._next = _parent.firstElementChild;
  }

  /** Return the child with this key at this place, the one that is there if any. */
  put<Name extends keyof HTMLElementTagNameMap>(
    name: Name,
    key: string,
    className = `fleet-Timeline-${key}`
  ): HTMLElementTagNameMap[Name] {
    let child = this._find(name, key);
    if (!child) {
      child = this._parent.ownerDocument.createElement(name);
      child.dataset['fleetKey'] = key;
      child.className = className;
    }
    if (child === this._next) {
      this._next = child.nextElementSibling;
    } else {
      this._parent.insertBefore(child, this._next);
    }
    return child as HTMLElementTagNameMap[Name];
  }

  /** Like `put`, with a text. An empty text puts nothing. */
  text(
    name: keyof HTMLElementTagNameMap,
    key: string,
    text: string,
    className?: string
  ): HTMLElement | null {
    if (!text) {
      return null;
    }
    const child = this.put(name, key, className);
    setText(child, text);
    return child;
  }

  /** Remove what was there and has not been put again. */
  end(): void {
    while (this._next) {
      const gone = this._next;
      this._next = gone.nextElementSibling;
      gone.remove();
    }
  }

  private _find(name: string, key: string): HTMLElement | null {
    for (let at = this._next; at; at = at.nextElementSibling) {
      if (at instanceof HTMLElement && at.dataset['fleetKey'] === key) {
        return at.localName === name ? at : null;
      }
    }
    return null;
  }

  private _next: Element | null;
}

/** Write a text where it differs: a live region speaks each time it is written. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** Write an attribute where it differs; null removes it. */
export function setAttribute(
  element: Element,
  name: string,
  value: string | null
): void {
  if (value === null) {
    element.removeAttribute(name);
  } else if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}
