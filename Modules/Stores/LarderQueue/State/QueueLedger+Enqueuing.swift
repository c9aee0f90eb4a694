import Larder

/// Enqueuing and removing items, and the capacity.
extension QueueLedger {
  /// An item that is to come.
  struct NewItem: Sendable {
    /// Its key; `nil` to generate one, of ``generatedKeyLength`` bytes.
    var key: StoreKey?
    var place: QueuePlace
    /// In microseconds.
    var delay: Int64 = 0
  }

  /// How many bytes a generated key has.
  static let generatedKeyLength = 16

  /// Begins a call, which counts for what it adds itself.
  mutating func beginCall() {
    account.begin(at: nextSequence)
  }

  /// Enqueues an item, unless its key is in the queue or remembered.
  ///
  /// - Parameters:
  ///   - new: The item.
  ///   - records: Gets what is to be written, the item first.
  mutating func enqueue(
    _ new: NewItem, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> EnqueuedItem {
    if let key = new.key, let sequence = sequenceOfDuplicate(key) {
      return EnqueuedItem(key: key, sequence: sequence, isDuplicate: true, droppedCount: 0)
    }
    let key = new.key ?? generatedKey()
    let dropped = try add(new, key: key, hasCallersKey: new.key != nil, into: &records)
    tallies.enqueued += 1
    return EnqueuedItem(key: key, sequence: nextSequence - 1, isDuplicate: false, droppedCount: dropped)
  }

  /// Refuses items that would not even fit into an empty queue, together.
  ///
  /// - Parameter sizes: The bytes of the keys and the payloads of those with a key, and of the others.
  func checkFit(_ sizes: [(key: StoreKey?, bytes: Int)]) throws(QueueRefusal) {
    guard rules.isLimited else { return }
    var keys: Set<StoreKey> = []
    var (items, bytes) = (0, 0)
    for (key, size) in sizes {
      if let key {
        guard sequenceOfDuplicate(key) == nil, keys.insert(key).inserted else { continue }
      }
      items += 1
      bytes += (key?.count ?? QueueLedger.generatedKeyLength) + size
    }
    guard items <= rules.capacity.items ?? .max, bytes <= rules.capacity.bytes ?? .max else {
      throw .full(neverFits: true)
    }
  }

  private func sequenceOfDuplicate(_ key: StoreKey) -> UInt64? {
    if let sequence = keys[key] { return sequence }
    if let sequence = deadSequences[key]?.last, let death = deaths[sequence],
      death.time.addingSaturating(rules.duplicateWindow) > now
    {
      return sequence
    }
    guard let entry = remembered[key], entry.deadline > now else { return nil }
    return entry.sequence
  }

  /// A key that sorts by arrival and that no other item has.
  private mutating func generatedKey() -> StoreKey {
    while true {
      let key = QueueLedger.generatedKey(of: nextSequence)
      guard callersKeyCount > 0, keys.contains(key) || deadSequences[key] != nil else { return key }
      nextSequence += 1
    }
  }

  /// A sequence number in 16 hexadecimal digits.
  static func generatedKey(of sequence: UInt64) -> StoreKey {
    withUnsafeTemporaryAllocation(byteCount: generatedKeyLength, alignment: 1) { digits in
      for (index, shift) in stride(from: 60, through: 0, by: -4).enumerated() {
        let digit = UInt8(truncatingIfNeeded: sequence >> UInt64(shift)) & 15
        digits[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
      }
      return StoreKey(copying: UnsafeRawBufferPointer(digits))
    }
  }

  private mutating func add(
    _ new: NewItem, key: StoreKey, hasCallersKey: Bool, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> Int {
    guard nextSequence <= QueueRecord.greatestSequence else { throw .exhausted }
    let item = QueueItem(
      sequence: nextSequence, key: key, arrival: now, place: new.place, stateSegment: new.place.segment,
      hasCallersKey: hasCallersKey)
    var drops: [QueueRecord] = []
    let dropped = try makeRoom(items: 1, bytes: item.size, for: item.sequence, size: item.size, into: &drops)
    var state = ItemState(item: item)
    if new.delay > 0 {
      state.standing = .delayed(ItemTimer(deadline: now.addingSaturating(new.delay), length: new.delay))
    }
    change(.put(state), &records)
    // Behind the item, whose place in the frame is settled.
    records.append(contentsOf: drops)
    return dropped
  }

  /// Puts a value under a key: into the place of the live item that has it, or at the end.
  mutating func setValue(
    at place: QueuePlace, forKey key: StoreKey, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    guard let old = item(forKey: key) else {
      _ = try add(NewItem(key: key, place: place), key: key, hasCallersKey: true, into: &records)
      return
    }
    var state = state(of: old)
    state.item.place = place
    state.item.stateSegment = place.segment
    state.item.attempts = 0
    suspects.remove(old.sequence)
    if old.phase == .leased { state.standing = .waiting }
    var drops: [QueueRecord] = []
    let growth = state.item.size - old.size
    _ = try makeRoom(items: 0, bytes: growth, for: old.sequence, size: state.item.size, into: &drops)
    change(.put(state), &records)
    records.append(contentsOf: drops)
  }

  /// The items, dead letters included, that count against a capacity.
  var heldItems: Int { counts.live + counts.dead }
  /// Their bytes.
  var heldBytes: Int { liveBytes + deadBytes }

  /// Drops what must go for something to come, where that is the policy: dead letters first, then the oldest items.
  ///
  /// - Parameters:
  ///   - count: How many items more there will be.
  ///   - bytes: How many bytes more there will be.
  ///   - sequence: The item that comes or grows, which is not dropped.
  ///   - size: The bytes that it will have.
  ///   - records: Gets what is to be written.
  /// - Returns: How many items were dropped.
  private mutating func makeRoom(
    items count: Int, bytes: Int, for sequence: UInt64, size: Int, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> Int {
    guard rules.isLimited else { return 0 }
    let capacity = rules.capacity
    account.note(size, of: sequence)
    guard account.items <= capacity.items ?? .max, account.bytes <= capacity.bytes ?? .max else {
      throw .full(neverFits: true)
    }
    var dropped = 0
    // What shrinks always fits.
    while heldItems + count > capacity.items ?? .max && count > 0
      || heldBytes + bytes > capacity.bytes ?? .max && bytes > 0
    {
      guard capacity.policy == .dropOldest,
        let oldest = deadItems.first ?? items.first(where: { $0.phase != .leased && $0.sequence != sequence }),
        oldest.sequence < account.firstSequence
      else { throw .full(neverFits: false) }
      change(.remove(oldest.sequence...oldest.sequence), &records)
      dropped += 1
    }
    tallies.dropped += dropped
    return dropped
  }

  // MARK: Removing

  /// Takes out the live item of a key, where there is one.
  mutating func removeValue(forKey key: StoreKey, into records: inout [QueueRecord]) {
    guard let sequence = keys[key] else { return }
    change(.remove(sequence...sequence), &records)
  }

  /// Takes out the live items of a range.
  mutating func removeAll(in range: KeyRange, into records: inout [QueueRecord]) {
    let sequences = items(in: range, limit: .max, order: .ascending).map(\.sequence).sorted()
    for sequence in sequences {
      apply(.remove(sequence...sequence), from: .decision)
      account.note(nil, of: sequence)
      // Neighbours go by one record.
      if case .remove(let last)? = records.last, last.upperBound + 1 == sequence {
        records[records.count - 1] = .remove(last.lowerBound...sequence)
      } else {
        records.append(.remove(sequence...sequence))
      }
    }
  }
}
