import Larder
import LarderFiles

/// What is behind a queue, for the one who is busy with it: what it holds, its files, and the frames of the group that
/// goes on.
struct QueueCore: Sendable {
  var ledger: QueueLedger
  var log: QueueLog
  var frames: FrameBuffer
  var isClosed = false

  /// The time of the group, in microseconds: what is handed out now is leased from now on.
  private(set) var present: Int64 = 0
  /// What is added to times as they are written, in microseconds.
  private(set) var clockOffset: Int64 = 0

  /// Below this size of the log its space is not reclaimed: the last time was in vain.
  var reclaimingSize: Int64 = 0

  /// Changes that opening made to the ledger, to be written before anything else.
  private var pending: [QueueRecord]

  init(_ opened: QueueRecovery.Opened) {
    ledger = opened.ledger
    log = opened.log
    pending = opened.pending
    frames = FrameBuffer()
    log.reset(&frames, clockOffset: 0)
  }

  /// Makes sure that frames can be appended, and writes what opening changed.
  ///
  /// - Parameters:
  ///   - time: Tells the time.
  ///   - mayUseReserve: Whether the reserve may be given back for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady(_ time: QueueTime, mayUseReserve: Bool) throws {
    if !log.isReady { try log.makeReady(&ledger, at: time.steady(), mayUseReserve: mayUseReserve) }
    guard !pending.isEmpty else { return }
    var buffer = FrameBuffer()
    log.reset(&buffer, clockOffset: time.offset)
    buffer.beginCall()
    for record in pending { buffer.append(record) }
    buffer.finish()
    try log.append(buffer, mayUseReserve: true)
    // Once more, for the segment in which they stand.
    for record in pending { ledger.apply(record, from: .decision) }
    ledger.commit()
    pending = []
  }

  /// Makes everything durable that was written before.
  ///
  /// - Parameter time: Tells the time.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func synchronize(_ time: QueueTime) throws {
    guard log.folder.access == .readWrite else { return }
    if log.isSealed { try makeReady(time, mayUseReserve: true) }
    try log.synchronize()
  }

  /// Closes the files.
  ///
  /// - Parameter time: Tells the time.
  /// - Throws: ``StoreError``; `FileError`. The lock is given back all the same.
  mutating func close(_ time: QueueTime) throws {
    isClosed = true
    let preparation = Result {
      if !pending.isEmpty, log.folder.access == .readWrite { try makeReady(time, mayUseReserve: true) }
    }
    try log.close(&ledger)
    try preparation.get()
  }

  /// Begins a group: there are no frames yet.
  mutating func beginGroup(_ time: QueueTime) {
    present = time.steady()
    clockOffset = time.offset
    log.reset(&frames, clockOffset: clockOffset)
  }

  // MARK: Items

  /// Enqueues an item; see ``QueueLedger/enqueue(_:into:)``.
  mutating func enqueue(_ payload: [UInt8], key: StoreKey?, delay: Int64) throws(QueueRefusal) -> EnqueuedItem {
    var records: [QueueRecord] = []
    let new = QueueLedger.NewItem(key: key, place: frames.place(payloadLength: payload.count), delay: delay)
    let enqueued = try ledger.enqueue(new, into: &records)
    write(records, payload)
    return enqueued
  }

  /// Puts a value under a key; see ``QueueLedger/setValue(at:forKey:into:)``.
  mutating func setValue(_ payload: [UInt8], forKey key: StoreKey) throws(QueueRefusal) {
    var records: [QueueRecord] = []
    try ledger.setValue(at: frames.place(payloadLength: payload.count), forKey: key, into: &records)
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

  // MARK: Receipts

  /// Leases the items that wait and came first; those that were delivered too often become dead letters.
  ///
  /// - Parameters:
  ///   - max: The most deliveries.
  ///   - length: How long the leases are, in microseconds.
  /// - Throws: ``QueueRefusal/diskFull`` where the disk is so full that what is left is for what is leased already.
  mutating func lease(_ max: Int, length: Int64) throws(QueueRefusal) -> [LeasedItem] {
    let epoch = UInt64.random(in: 1 ... .max)
    var max = max
    if log.reserve.isLow {
      // One at a time goes on: it gives space back, in the end.
      guard ledger.counts.leased == 0 || ledger.counts.waiting == 0 else { throw .diskFull }
      max = 1
    } else if log.reserve.isSpent {
      max = min(max, Int(log.reserve.size / 1024))
    }
    var leased: [LeasedItem] = []
    while leased.count < max {
      let items = ledger.firstWaiting(min(max - leased.count, 1024))
      guard !items.isEmpty else { break }
      for item in items {
        if ledger.isExhausted(item) {
          try change { $0.kill(item, .tooManyDeliveries, into: &$1) }
        } else {
          let present = present
          let receipt = try change {
            $0.lease(item, length: length, from: present, epoch: epoch, into: &$1)
          }
          leased.append(LeasedItem(item: item, receipt: receipt))
        }
      }
    }
    return leased
  }

  /// Does something with each of some receipts.
  ///
  /// - Returns: Those that are stale.
  mutating func staleReceipts(
    of receipts: [DeliveryReceipt],
    _ body: (DeliveryReceipt, inout QueueLedger, inout [QueueRecord]) throws(QueueRefusal) -> Void
  ) -> [DeliveryReceipt] {
    var stale: [DeliveryReceipt] = []
    for receipt in receipts {
      do throws(QueueRefusal) {
        try change { ledger, records throws(QueueRefusal) in try body(receipt, &ledger, &records) }
      } catch {
        // With a receipt nothing else can be wrong.
        stale.append(receipt)
      }
    }
    return stale
  }
}
