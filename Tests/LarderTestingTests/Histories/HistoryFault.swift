/// What can be wrong with a ``HistoryMutantStore``.
enum HistoryFault: String, CaseIterable, Sendable {
  /// A removed key is there again after the next update.
  case resurrectsAfterRemove
  /// A batch of more than three changes loses its last one.
  case losesLastOfLargeBatch
  /// A descending scan with a limit begins at the wrong end.
  case limitsDescendingScansFirst
  /// What an abandoned update removed stays removed.
  case keepsAbandonedUpdates
  /// What was written last is gone after closing and opening.
  case forgetsLastWrite
  /// A read of several keys reads one after another.
  case readsOneByOne
  /// An update reads, and writes some time later.
  case updateIsNotAtomic
  /// The changes of a batch are made one after another.
  case appliesOneByOne
  /// A value once read is given again some time later.
  case givesStaleValues

  /// Those that only several tasks at once bring to light.
  static let concurrent: [HistoryFault] = [.readsOneByOne, .updateIsNotAtomic, .appliesOneByOne, .givesStaleValues]

  /// Those that show in what one task does.
  static let sequential = allCases.filter { !concurrent.contains($0) }
}
