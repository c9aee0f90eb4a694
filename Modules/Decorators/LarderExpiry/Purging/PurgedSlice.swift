import Larder

/// What came of purging a part of a store.
struct PurgedSlice: Sendable {
  /// How many entries were removed.
  let removed: Int

  /// What of the range is still to be looked at; `nil` where nothing is.
  let remaining: KeyRange?
}
