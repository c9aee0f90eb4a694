/// Damage and torn records that opening a queue found in its files.
///
/// After a crash `tornBytes` is ordinary: the bytes of a record whose write had not returned. Anything
/// else is damage. What is damaged is kept in files of its own beside the log, named `damaged-SEGMENT-OFFSET`; everything
/// else is served.
public struct RecoveryReport: Sendable, Hashable {
  /// Bytes at the end of the log that are no whole record, or follow such: they were left out.
  public var tornBytes = 0

  /// How many damaged places there are in the files, each of which may have held several records.
  public var damagedPlaces = 0

  /// The bytes of those places.
  public var damagedBytes = 0

  /// How many files of the log are missing that should be there.
  public var missingSegments = 0

  /// Whether anything is damaged or missing.
  public var hasDamage: Bool { damagedPlaces > 0 || missingSegments > 0 }
}
