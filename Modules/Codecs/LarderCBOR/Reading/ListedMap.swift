/// A map whose keys are listed.
struct ListedMap {
  /// The first of its keys in the list.
  let firstEntry: Int

  /// How many keys it has.
  var entryCount = 0

  /// Which of them is likely to be asked for next.
  var likely = 0

  /// What follows its last value.
  var end: UnsafeRawPointer

  /// The table for finding a key among many; the number of a key, or -1, in each slot.
  var slots: [Int32] = []
}
