import Larder

/// Enqueuing and removing items, and the capacity.
extension QueueLedger {
  /// The length of a generated key, in bytes.
  static let generatedKeyLength = 16

  /// Begins a call, whose own additions are limited to the capacity.
  mutating func beginCall() {
    account.begin(at: nextSequence)
  }

  /// Enqueues an item.
  ///
  /// It is a no-op if an item with the key is in the queue or remembered.
  ///
  /// - Parameters:
  ///   - payload: The encoded item.
  ///   - key: The key; `nil` to generate one of ``generatedKeyLength`` bytes.
  ///   - delay: The delay, in microseconds. Defaults to 0.
  ///   - frames: The frames to write, to which this method appends.
  mutating func enqueue(
    _ payload: [UInt8], key: StoreKey?, delay: Int64 = 0, into frames: inout FrameBuffer
  ) throws(QueueRefusal) -> EnqueuedItem {
    if let key, let sequence = sequenceOfDuplicate(key) {
      return EnqueuedItem(key: key, sequence: UInt128(sequence), isDuplicate: true)
    }
    let newKey = key ?? generatedKey()
    let dropped = try add(payload, key: newKey, hasCallersKey: key != nil, delay: delay, into: &frames)
    tallies.enqueued += 1
    return EnqueuedItem(key: newKey, sequence: UInt128(nextSequence - 1), droppedCount: dropped)
  }

  /// Checks that items would fit together into an empty queue.
  ///
  /// - Parameter sizes: For an item with a key, the key and the size of its payload; for other items, the size of the
  ///   payload.
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
    guard let entry = remembered[key], entry.deadline > now else { return nil }
    return entry.sequence
  }

  /// Returns a key that sorts by arrival and that no other item has.
  private mutating func generatedKey() -> StoreKey {
    while true {
      let key = QueueLedger.generatedKey(of: nextSequence)
      guard callersKeyCount > 0, keys.contains(key) || deadSequences[key] != nil else { return key }
      nextSequence += 1
    }
  }

  /// Returns a sequence number as 16 hexadecimal digits.
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
    _ payload: [UInt8], key: StoreKey, hasCallersKey: Bool, delay: Int64 = 0, into frames: inout FrameBuffer
  ) throws(QueueRefusal) -> Int {
    guard nextSequence <= QueueRecord.greatestSequence else { throw .exhausted }
    let size = key.count + payload.count
    let dropped = try makeRoom(items: 1, bytes: size, for: nextSequence, size: size, into: &frames)
    var state = ItemState(
      item: QueueItem(sequence: nextSequence, key: key, arrival: now, hasCallersKey: hasCallersKey))
    if delay > 0 { state.standing = .delayed(ItemTimer(deadline: now.addingSaturating(delay), length: delay)) }
    write(state, payload, into: &frames)
    return dropped
  }

  /// Sets the value of a key, either by replacing its live item or by enqueuing a new item.
  ///
  /// - Parameters:
  ///   - payload: The encoded item.
  ///   - key: The key.
  ///   - hasCallersKey: A Boolean value that indicates whether the payload was encoded for the key, which the caller
  ///     gave, and not for a generated one.
  ///   - frames: The frames to write, to which this method appends.
  mutating func setValue(
    _ payload: [UInt8], forKey key: StoreKey, hasCallersKey: Bool, into frames: inout FrameBuffer
  ) throws(QueueRefusal) {
    guard let old = item(forKey: key) else {
      _ = try add(payload, key: key, hasCallersKey: hasCallersKey, into: &frames)
      return
    }
    var state = state(of: old)
    state.item.hasCallersKey = hasCallersKey
    state.item.attempts = 0
    suspects.remove(old.sequence)
    if old.phase == .leased { state.standing = .waiting }
    let size = key.count + payload.count
    _ = try makeRoom(items: 0, bytes: size - old.size, for: old.sequence, size: size, into: &frames)
    write(state, payload, into: &frames)
  }

  /// Writes an item with its payload, whose location only the frames determine.
  private mutating func write(_ state: ItemState, _ payload: [UInt8], into frames: inout FrameBuffer) {
    var state = state
    state.item.place = frames.append(state, payload: payload)
    state.item.stateSegment = state.item.place.segment
    apply(.put(state), from: .decision)
  }

  /// The number of items and dead letters that count against the capacity.
  var heldItems: Int { counts.live + counts.dead }
  /// The size of items and dead letters that counts against the capacity, in bytes.
  var heldBytes: Int { liveBytes + deadBytes }

  /// Drops items to make room for another one if that is the policy, dead letters before the oldest items.
  ///
  /// - Parameters:
  ///   - count: The number of additional items.
  ///   - bytes: The number of additional bytes.
  ///   - sequence: The sequence number of the item that is added or grows. It is not dropped.
  ///   - size: The new size of that item, in bytes.
  ///   - frames: The frames to write, to which this method appends.
  /// - Returns: The number of dropped items.
  private mutating func makeRoom(
    items count: Int, bytes: Int, for sequence: UInt64, size: Int, into frames: inout FrameBuffer
  ) throws(QueueRefusal) -> Int {
    guard rules.isLimited else { return 0 }
    let capacity = rules.capacity
    account.note(size, of: sequence)
    guard account.items <= capacity.items ?? .max, account.bytes <= capacity.bytes ?? .max else {
      throw .full(neverFits: true)
    }
    var dropped = 0
    // An item that shrinks always fits.
    while heldItems + count > capacity.items ?? .max && count > 0
      || heldBytes + bytes > capacity.bytes ?? .max && bytes > 0
    {
      guard capacity.policy == .dropOldest,
        let oldest = deadItems.first ?? items.all.first(where: { $0.phase != .leased && $0.sequence != sequence }),
        oldest.sequence < account.firstSequence
      else { throw .full(neverFits: false) }
      change(.remove(oldest.sequence...oldest.sequence), &frames)
      dropped += 1
    }
    tallies.dropped += dropped
    return dropped
  }

  // MARK: Removing

  /// Removes the live item of a key, if there is one.
  mutating func removeValue(forKey key: StoreKey, into frames: inout FrameBuffer) {
    guard let sequence = keys[key] else { return }
    change(.remove(sequence...sequence), &frames)
  }

  /// Removes the live items of a range of keys.
  mutating func removeAll(in range: KeyRange, into frames: inout FrameBuffer) {
    let sequences = items(in: range, limit: .max, order: .ascending).map(\.sequence).sorted()
    var removed: [ClosedRange<UInt64>] = []
    for sequence in sequences {
      apply(.remove(sequence...sequence), from: .decision)
      account.note(nil, of: sequence)
      // One record removes adjacent items.
      if let last = removed.last, last.upperBound + 1 == sequence {
        removed[removed.count - 1] = last.lowerBound...sequence
      } else {
        removed.append(sequence...sequence)
      }
    }
    for range in removed { frames.append(.remove(range)) }
  }
}

/// The items and bytes that the current call has added to a queue, which must fit into the capacity by themselves.
struct CallAccount: Sendable {
  /// The first sequence number that the current call can assign.
  private(set) var firstSequence: UInt64 = 1
  private(set) var items = 0
  private(set) var bytes = 0
  private var sizes: [UInt64: Int] = [:]

  /// Begins another call.
  ///
  /// - Parameter nextSequence: The number of the next item.
  mutating func begin(at nextSequence: UInt64) {
    firstSequence = nextSequence
    guard !sizes.isEmpty else { return }
    sizes.removeAll()
    (items, bytes) = (0, 0)
  }

  /// Records the size of an item that the call adds, replaces or removes.
  ///
  /// - Parameters:
  ///   - size: The size of the item in bytes; `nil` if it is removed.
  ///   - sequence: The sequence number of the item.
  mutating func note(_ size: Int?, of sequence: UInt64) {
    guard size != nil || !sizes.isEmpty else { return }
    let old = sizes[sequence]
    sizes[sequence] = size
    bytes += (size ?? 0) - (old ?? 0)
    if sequence >= firstSequence { items += (size == nil ? 0 : 1) - (old == nil ? 0 : 1) }
  }
}
