/// What one caller of a ``ModelledCache`` does.
enum ModelledOperation: Hashable, CaseIterable {
  /// Reads `a`.
  case read
  /// Reads `a`, and is cancelled before it hears of the value; what it began goes on.
  case readAndLeave
  /// Reads `a`; where that comes to a base read, the base fails.
  case readInVain
  /// Reads `a` from the base.
  case reload
  /// Reads `a` from the base behind somebody who had an old copy.
  case refresh
  /// Reads both keys at once.
  case readBoth
  /// Writes `a`.
  case write
  /// Removes `a`.
  case remove
  /// Tries to write `a`, and the base fails without having done it.
  case writeInVain
  /// Writes `a`, and the base fails after having done it.
  case writeUnknowingly
  /// Writes both keys at once.
  case writeBoth
  /// Removes both keys as a range.
  case removeRange
  /// Removes both keys as a range and writes `a`, at once.
  case replaceRange
  /// Reads and writes `a` as one step.
  case update
  /// Forgets the copy of `a`.
  case invalidate
  /// Writes `a` past the cache, and then invalidates it.
  case writeElsewhere
  /// Writes `a` past the cache, and then reads it from the base.
  case writeElsewhereAndReload
  /// Writes `a` past the cache, and tells nobody: what readers get may be old, but not older than what a reload got.
  case writePast
  /// Drops the copy of `a` to make room.
  case evict
}
