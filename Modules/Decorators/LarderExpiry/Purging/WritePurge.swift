import Larder

/// Decides which writes purge, how much, and where: a way through the whole store, over and over, a slice at a time.
///
/// Of two entries looked at for each one written, at least as many are found as can have become expired on the way, so that
/// what has expired never grows beyond what was written in one round.
struct WritePurge: Sendable {
  /// A part of the store that is to be purged.
  struct Slice: Sendable, Equatable {
    /// Where it begins.
    let range: KeyRange

    /// How many entries to look at.
    let size: Int
  }

  /// How many entries have to be written before a slice is due, so that most writes cost nothing more.
  static let writesPerSlice = 16

  /// How many entries are looked at for each one that is written.
  static let entriesPerWrite = 2

  /// The most entries of a slice, so that no write waits for long.
  static let maximumSliceSize = 128

  /// How many entries were written and not yet answered for.
  private var writeCount = 0

  /// Where the next slice begins.
  private var range = KeyRange.all

  /// Whether a write is purging: another one has nothing to do meanwhile.
  private var isRunning = false

  /// Notes that entries are being written.
  ///
  /// - Parameter count: How many.
  /// - Returns: The slice that is to be purged before, for which ``end(remaining:)`` must be called; `nil` for none.
  mutating func begin(writing count: Int) -> Slice? {
    let mostCounted = WritePurge.maximumSliceSize / WritePurge.entriesPerWrite
    writeCount = min(writeCount + min(count, mostCounted), mostCounted)
    guard count > 0, !isRunning, writeCount >= WritePurge.writesPerSlice else { return nil }
    defer { writeCount = 0 }
    isRunning = true
    return Slice(range: range, size: writeCount * WritePurge.entriesPerWrite)
  }

  /// Notes that a slice was purged.
  ///
  /// - Parameter remaining: What lies behind it, or all of it where that failed; `nil` where the store ends there.
  mutating func end(remaining: KeyRange?) {
    isRunning = false
    range = remaining ?? .all
  }
}
