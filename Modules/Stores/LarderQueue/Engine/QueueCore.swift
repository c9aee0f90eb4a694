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

  /// Changes that opening made to the ledger, to be written before anything else.
  private var pending: [QueueRecord]

  init(_ opened: QueueRecovery.Opened) {
    ledger = opened.ledger
    log = opened.log
    pending = opened.pending
    frames = FrameBuffer()
    log.reset(&frames)
  }

  /// Makes sure that frames can be appended, and writes what opening changed.
  ///
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady() throws {
    if !log.isReady { try log.makeReady(&ledger) }
    guard !pending.isEmpty else { return }
    var buffer = log.makeBuffer()
    buffer.beginFrame()
    for record in pending { buffer.append(record) }
    buffer.endFrame()
    try log.append(buffer)
    pending = []
  }

  /// Closes the files.
  ///
  /// - Throws: ``StoreError``; `FileError`. The lock is given back all the same.
  mutating func close() throws {
    isClosed = true
    let preparation = Result { if !pending.isEmpty, log.folder.access == .readWrite { try makeReady() } }
    try log.close(&ledger)
    try preparation.get()
  }

  /// Begins a group: there are no frames yet.
  mutating func beginGroup() {
    log.reset(&frames)
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
