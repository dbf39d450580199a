// `boardwalk-fleet/events`: from the lanes to the control plane. A shipper is made of an opened fleet (`boardwalk-fleet`)
// and the HTTP client of the process (`boardwalk-fleet/platform`). Only programs outside import this file.

export {
  /** Brings the rows of all lanes to the control plane in order, and the finalize of each run last. */
  Shipper,
  type ShipperCounts,
  /** What a shipper is made of. */
  type ShipperOptions,
} from './shipper.js';
