// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** The admission timeline for any page: needs nothing but the page. */
export { instant } from './amounts.js';
export { ENDED, HOLDING } from './contract.js';
export type * from './contract.js';
export { fileName, toFile } from './file.js';
export { merge } from './merge.js';
export { render } from './render.js';
export type { IAction, IRenderOptions } from './render.js';
export { asJson, asText } from './text.js';
export { english } from './translator.js';
export type { ITranslator } from './translator.js';
export { view } from './view.js';
export type { IView } from './view.js';
export { Words } from './words.js';
