/// What can be wrong with how a ``SnapshotLogStore`` recovers.
enum RecoveryFault: String, CaseIterable, Sendable {
  /// What a torn tail of the log holds stays, and what comes next is written behind it.
  case writesBehindTornTail
  /// A torn tail is removed by writing the log anew in its place.
  case rewritesInPlace
}
