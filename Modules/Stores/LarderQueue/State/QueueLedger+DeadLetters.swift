import Larder

/// Requeuing and purging dead letters.
extension QueueLedger {
  /// Puts the latest dead letter of a key at the end of the line, as if it came now.
  ///
  /// - Returns: Whether there was one.
  mutating func requeue(_ key: StoreKey, into records: inout [QueueRecord]) throws(QueueRefusal) -> Bool {
    guard let sequence = deadSequences[key]?.last, deadItems[sequence] != nil else { return false }
    guard keys[key] == nil else { throw .conflict(key) }
    guard nextSequence <= QueueRecord.greatestSequence else { throw .exhausted }
    // It counts against the capacity already.
    change(.revive(sequence: sequence, newSequence: nextSequence, arrival: now), &records)
    return true
  }

  /// Puts dead letters at the end of the line, in order of arrival, those aside whose key an item has.
  ///
  /// - Parameters:
  ///   - limit: The most to look at.
  ///   - sequences: Those with numbers in this range.
  ///   - records: Gets what is to be written.
  /// - Returns: How many there were, and the number of the last that was looked at; `nil` if there are no more.
  mutating func requeueAll(
    _ limit: Int, in sequences: ClosedRange<UInt64>, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> (count: Int, last: UInt64?) {
    let letters = deadLetters(limit, after: sequences.lowerBound - 1)
    var count = 0
    for letter in letters where letter.item.sequence <= sequences.upperBound {
      guard keys[letter.item.key] == nil else { continue }
      guard nextSequence <= QueueRecord.greatestSequence else { throw .exhausted }
      change(.revive(sequence: letter.item.sequence, newSequence: nextSequence, arrival: now), &records)
      count += 1
    }
    let last = letters.last?.item.sequence
    return (count, last.flatMap { $0 < sequences.upperBound ? $0 : nil })
  }

  /// Takes out the dead letters of a key.
  ///
  /// - Returns: How many there were.
  mutating func purgeDeadLetters(_ key: StoreKey, into records: inout [QueueRecord]) -> Int {
    let sequences = deadSequences[key] ?? []
    for sequence in sequences { change(.remove(sequence...sequence), &records) }
    return sequences.count
  }

  /// Takes out every dead letter.
  ///
  /// - Returns: How many there were.
  mutating func purgeDeadLetters(into records: inout [QueueRecord]) -> Int {
    var sequences: [UInt64] = []
    deadItems.forEach { sequences.append($0.sequence) }
    for sequence in sequences { change(.remove(sequence...sequence), &records) }
    return sequences.count
  }
}
