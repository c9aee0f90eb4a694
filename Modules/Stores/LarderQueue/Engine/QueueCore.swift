import Larder
import LarderFiles

/// The state of a queue, owned by the thread that is busy with it: the ledger, the files, and the frames of the current
/// group.
struct QueueCore: Sendable {
  var ledger: QueueLedger
  var log: QueueLog
  var frames: FrameBuffer
  var isClosed = false

  /// The time of the group, in microseconds: what is handed out now is leased from now on.
  private(set) var present: Int64 = 0
  /// The difference that is added to times as they are written, in microseconds.
  private(set) var clockOffset: Int64 = 0

  /// Below this size of the log its space is not reclaimed: the last time was in vain.
  var reclaimingSize: Int64 = 0

  /// The items that opening has changed, to be written as they are then before anything else.
  private var pending: [UInt64]

  init(_ opened: QueueRecovery.Opened) {
    ledger = opened.ledger
    log = opened.log
    pending = opened.pending.compactMap { if case .state(let sequence, _, _) = $0 { sequence } else { nil } }
    frames = FrameBuffer()
    log.reset(&frames, clockOffset: 0)
  }

  /// Whether frames can be appended as things are; otherwise ``makeReady(_:mayUseReserve:)`` comes first.
  var isReady: Bool { log.isReady(for: ledger) && pending.isEmpty }

  /// Makes sure that frames can be appended, and writes what opening changed.
  ///
  /// - Parameters:
  ///   - time: Tells the time.
  ///   - mayUseReserve: Whether the reserve may be given back for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady(_ time: QueueTime, mayUseReserve: Bool) throws {
    if !log.isReady(for: ledger) { try log.makeReady(&ledger, at: time.steady(), mayUseReserve: mayUseReserve) }
    guard !pending.isEmpty else { return }
    var buffer = FrameBuffer()
    log.reset(&buffer, clockOffset: time.offset)
    buffer.beginCall()
    // As they are now: where it could not be written before, they may have been changed again.
    let records = pending.compactMap { sequence in
      ledger.state(of: sequence).map {
        QueueRecord.state(sequence: sequence, attempts: $0.item.attempts, $0.standing)
      }
    }
    for record in records { buffer.append(record) }
    buffer.finish()
    if !records.isEmpty { try log.append(buffer, mayUseReserve: true) }
    // Once more, for the segment in which they stand.
    for record in records { ledger.apply(record, from: .decision) }
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

  /// The payloads of items, `nil` if one is damaged.
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

  /// How many items of those that wait may be leased as things are; on a full disk not all, so that what they leave behind
  /// can be written anew.
  var leasableCount: Int {
    mutating get { log.reserve.isSpent ? leasable(1024).count : ledger.counts.waiting }
  }

  /// The first items that may be leased.
  private mutating func leasable(_ limit: Int) -> [QueueItem] {
    guard log.reserve.isSpent else { return ledger.firstToLease(limit) }
    guard log.reserve.mayLease else { return [] }
    let first = log.reserve.firstSegment
    let room = log.reserve.stateLimit - ledger.uses.states(from: first)
    let limit = min(limit, Int(log.reserve.size / 1024))
    if room > 0 { return ledger.firstToLease(min(limit, room)) }
    // The record of such an item takes the place of another one.
    return ledger.firstToLease(limit) { $0.stateSegment >= first && $0.stateSegment != $0.place.segment }
  }

  /// The most items that become dead letters in one call.
  private static let killingLimit = 4096

  /// Leases the items that wait and came first; those that were delivered too often become dead letters.
  ///
  /// An item that may kill its decoder is leased alone.
  ///
  /// - Parameters:
  ///   - max: The most deliveries.
  ///   - length: How long the leases are, in microseconds.
  ///   - mayBeSuspect: Whether it may be one that may kill its decoder; defaults to `true`.
  /// - Returns: The items, and whether there may be more although there are none: where many have become dead letters.
  mutating func lease(
    _ max: Int, length: Int64, mayBeSuspect: Bool = true
  ) throws(QueueRefusal) -> (items: [LeasedItem], goesOn: Bool) {
    let epoch = UInt64.random(in: 1 ... .max)
    var leased: [LeasedItem] = []
    var killed = 0
    while leased.count < max {
      guard killed < QueueCore.killingLimit else { return (leased, true) }
      let items = leasable(min(max - leased.count, 1024))
      guard !items.isEmpty else { break }
      for item in items {
        if ledger.isExhausted(item) {
          try change { $0.kill(item, .tooManyDeliveries, into: &$1) }
          killed += 1
        } else {
          let isSuspect = ledger.isSuspect(item)
          if isSuspect, !leased.isEmpty || !mayBeSuspect { return (leased, false) }
          let present = present
          let receipt = try change {
            $0.lease(item, length: length, from: present, epoch: epoch, into: &$1)
          }
          leased.append(LeasedItem(item: item, receipt: receipt))
          if isSuspect { return (leased, false) }
        }
      }
    }
    return (leased, false)
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

/// The clocks of a queue: the wall clock for times in files, and a monotonic one for leases and delays in this process.
struct QueueTime: Sendable {
  /// The microseconds since 1970, by the clock on the wall.
  let wall: @Sendable () -> Int64
  /// The same when the queue was opened, advanced by a monotonic clock.
  let steady: @Sendable () -> Int64

  /// - Parameters:
  ///   - clock: The monotonic clock.
  ///   - wall: Tells the microseconds since 1970.
  init(clock: some Clock<Duration>, wall: @escaping @Sendable () -> Int64) {
    self.wall = wall
    let (start, opening) = (clock.now, wall())
    steady = { opening.addingSaturating(start.duration(to: clock.now).microseconds) }
  }

  /// How far the clock on the wall is ahead now, in microseconds.
  var offset: Int64 {
    let (offset, overflows) = wall().subtractingReportingOverflow(steady())
    return overflows ? 0 : offset
  }
}

/// An item that was leased and is to be read.
struct LeasedItem: Sendable {
  var item: QueueItem
  var receipt: DeliveryReceipt
}
