/// The treatment of running leases when a queue is opened.
public enum LeasesOnOpening: Sendable, Hashable, CaseIterable {
  /// They go on until their deadlines, and their receipts are good: one process may receive and another acknowledge.
  case kept
  /// They end: their items are delivered again at once, and their receipts are stale.
  ///
  /// It is for a program whose consumers have all died with it.
  case void
}
