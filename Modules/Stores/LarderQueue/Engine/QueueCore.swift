import Larder
import LarderFiles

/// What is behind a queue, for the one who is busy with it: what it holds, its files, and the frames of the group that
/// goes on.
struct QueueCore: Sendable {
  var ledger: QueueLedger
  var log: QueueLog
  var frames: FrameBuffer
  var isClosed = false

  /// Below this size of the log its space is not reclaimed: the last time failed.
  var reclaimingSize: Int64 = 0

  /// When the lock was looked at last, in microseconds since 1970.
  private var lockCheck: Int64?

  init(ledger: QueueLedger, log: QueueLog) {
    self.ledger = ledger
    self.log = log
    frames = FrameBuffer()
    log.reset(&frames)
  }

  /// Begins a group: there are no frames yet.
  mutating func beginGroup() {
    log.reset(&frames)
  }

  /// Makes sure, every millisecond at most, that no one has removed the file of the lock.
  mutating func checkFiles() throws {
    if let lockCheck, (lockCheck..<lockCheck.addingSaturating(1000)).contains(ledger.now) { return }
    try log.checkFiles(during: .apply)
    lockCheck = ledger.now
  }

  // MARK: Items

  /// Enqueues an item; see ``QueueLedger/enqueue(_:into:)``.
  mutating func enqueue(_ payload: [UInt8], key: StoreKey?, delay: Int64) throws(QueueRefusal) -> EnqueuedItem {
    let place = frames.place(
      keyLength: key?.count ?? QueueLedger.generatedKeyLength, phase: delay > 0 ? .delayed : .waiting,
      payloadLength: payload.count)
    var records: [QueueRecord] = []
    let new = QueueLedger.NewItem(key: key, place: place, delay: delay)
    let enqueued = try ledger.enqueue(new, into: &records)
    write(records, payload)
    return enqueued
  }

  /// Puts a value under a key; see ``QueueLedger/setValue(at:forKey:into:)``.
  mutating func setValue(_ payload: [UInt8], forKey key: StoreKey) throws(QueueRefusal) {
    let phase: QueueItem.Phase = ledger.item(forKey: key)?.phase == .delayed ? .delayed : .waiting
    let place = frames.place(keyLength: key.count, phase: phase, payloadLength: payload.count)
    var records: [QueueRecord] = []
    try ledger.setValue(at: place, forKey: key, into: &records)
    write(records, payload)
  }

  /// Does something that writes no payload.
  mutating func change<Result>(
    _ body: (inout QueueLedger, inout [QueueRecord]) throws(QueueRefusal) -> Result
  ) throws(QueueRefusal) -> Result {
    var records: [QueueRecord] = []
    let result = try body(&ledger, &records)
    write(records, [])
    return result
  }

  /// Writes records, the first of which has the payload.
  private mutating func write(_ records: [QueueRecord], _ payload: [UInt8]) {
    for (index, record) in records.enumerated() {
      if index == 0 { frames.append(record, payload: payload) } else { frames.append(record) }
    }
  }

  /// The payloads of items, `nil` where one is damaged.
  func payloads(of items: [QueueItem]) throws(FileError) -> [ArraySlice<UInt8>?] {
    // What came in this group is in no file yet.
    var payloads = items.map { frames.payload(at: $0.place) }
    let stored = items.indices.filter { payloads[$0] == nil }
    for (index, payload) in zip(stored, try log.files.read(stored.map { items[$0].place })) {
      payloads[index] = payload
    }
    return payloads
  }
}
