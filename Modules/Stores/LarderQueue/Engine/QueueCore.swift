import Larder
import LarderFiles

/// The state of a queue: the ledger, the files, and the frames of the current group.
///
/// The thread that works on it owns it.
struct QueueCore: Sendable {
  var ledger: QueueLedger
  var log: QueueLog
  var frames: FrameBuffer
  var isClosed = false

  /// The time of the group, in microseconds, from which new leases are measured.
  private(set) var present: Int64 = 0
  /// The difference added to times when they are written, in microseconds.
  private(set) var clockOffset: Int64 = 0

  /// The size of the log below which no space is reclaimed, because the last attempt was in vain.
  var reclaimingSize: Int64 = 0

  /// The changes that opening has made.
  ///
  /// They are written before anything else.
  private var pending: OpeningChanges

  init(_ opened: QueueRecovery.Opened) {
    ledger = opened.ledger
    log = opened.log
    pending = opened.pending
    frames = FrameBuffer()
    log.reset(&frames, clockOffset: 0)
  }

  /// A Boolean value that indicates whether frames can be appended now.
  ///
  /// If not, ``makeReady(_:mayUseReserve:)`` must run first.
  var isReady: Bool { log.isReady(for: ledger) && pending.isEmpty }

  /// Prepares the log for new frames, and writes the changes that opening made.
  ///
  /// - Parameters:
  ///   - time: The clocks of the queue.
  ///   - mayUseReserve: A Boolean value that indicates whether the space reserve may be released for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady(_ time: QueueTime, mayUseReserve: Bool) throws {
    if !log.isReady(for: ledger) { try log.makeReady(&ledger, at: time.steady(), mayUseReserve: mayUseReserve) }
    guard !pending.isEmpty else { return }
    var buffer = FrameBuffer()
    log.reset(&buffer, clockOffset: time.offset)
    buffer.beginCall()
    // The current states, because items may have changed since an earlier attempt failed.
    let states = pending.items.compactMap { sequence in
      ledger.state(of: sequence).map {
        QueueRecord.state(sequence: sequence, attempts: $0.item.attempts, $0.standing)
      }
    }
    let ids = pending.ids.compactMap { id in
      ledger.remembered[id].map { QueueRecord.remember(key: id, sequence: $0.sequence, deadline: $0.deadline) }
    }
    let records = states + ids
    for record in records { buffer.append(record) }
    buffer.finish()
    if !records.isEmpty { try log.append(buffer, mayUseReserve: true) }
    // Applied again, because the ledger must know the segment of these records.
    for record in records { ledger.apply(record, from: .decision) }
    ledger.commit()
    pending = OpeningChanges()
  }

  /// Synchronizes all earlier writes with the disk.
  ///
  /// - Parameter time: The clocks of the queue.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func synchronize(_ time: QueueTime) throws {
    guard log.folder.access == .readWrite else { return }
    if log.isSealed { try makeReady(time, mayUseReserve: true) }
    try log.synchronize()
  }

  /// Closes the files.
  ///
  /// - Parameter time: The clocks of the queue.
  /// - Throws: ``StoreError``; `FileError`. The lock is released nevertheless.
  mutating func close(_ time: QueueTime) throws {
    isClosed = true
    let preparation = Result {
      if !pending.isEmpty, log.folder.access == .readWrite { try makeReady(time, mayUseReserve: true) }
    }
    try log.close(&ledger)
    try preparation.get()
  }

  /// Begins a group without frames.
  mutating func beginGroup(_ time: QueueTime) {
    present = time.steady()
    clockOffset = time.offset
    log.reset(&frames, clockOffset: clockOffset)
  }

  // MARK: Items

  /// Returns the payloads of items, `nil` for those that are damaged.
  func payloads(of items: [QueueItem]) throws(FileError) -> [ArraySlice<UInt8>?] {
    // Items that arrived in this group are in no file yet.
    var payloads = items.map { frames.payload(at: $0.place) }
    let stored = items.indices.filter { payloads[$0] == nil }
    for (index, payload) in zip(stored, try log.files.read(stored.map { items[$0].place })) {
      payloads[index] = payload
    }
    return payloads
  }

  // MARK: Receipts

  /// The number of waiting items that may be leased now.
  ///
  /// On a full disk it is limited, so the remaining live data can still be rewritten.
  var leasableCount: Int {
    mutating get { log.reserve.isSpent ? leasable(1024).count : ledger.counts.waiting }
  }

  /// Returns the first items that may be leased; see ``QueueLedger/firstToLease(_:deferring:mayBeDeferred:where:)``.
  private mutating func leasable(
    _ limit: Int, deferring deferred: Set<UInt64> = [], mayBeDeferred: Bool = true
  ) -> [QueueItem] {
    func first(_ limit: Int, where isWanted: (QueueItem) -> Bool = { _ in true }) -> [QueueItem] {
      ledger.firstToLease(limit, deferring: deferred, mayBeDeferred: mayBeDeferred, where: isWanted)
    }
    guard log.reserve.isSpent else { return first(limit) }
    guard log.reserve.mayLease else { return [] }
    let firstSegment = log.reserve.firstSegment
    let room = log.reserve.stateLimit - ledger.uses.states(from: firstSegment)
    let limit = min(limit, Int(log.reserve.size / 1024))
    if room > 0 { return first(min(limit, room)) }
    // The new record of such an item replaces one that is already counted.
    return first(limit) { $0.stateSegment >= firstSegment && $0.stateSegment != $0.place.segment }
  }

  /// The most items that become dead letters in one call.
  private static let deadLetterLimit = 4096

  /// Leases the first waiting items.
  ///
  /// Items that were delivered too often become dead letters instead.
  ///
  /// An item that may crash its decoder is leased alone.
  ///
  /// - Parameters:
  ///   - max: The maximum number of deliveries.
  ///   - length: The duration of the leases, in microseconds.
  ///   - mayBeSuspect: A Boolean value that indicates whether the first item may be one that may crash its decoder.
  ///     Defaults to `true`.
  ///   - deferred: The sequence numbers of the items that are leased only if no others are due. Defaults to an empty set.
  ///   - mayBeDeferred: A Boolean value that indicates whether deferred items are leased at all. Defaults to `true`.
  /// - Returns: The items; and whether more may follow although there are none, because items became dead letters.
  mutating func lease(
    _ max: Int, length: Int64, mayBeSuspect: Bool = true, deferring deferred: Set<UInt64> = [],
    mayBeDeferred: Bool = true
  ) throws(QueueRefusal) -> (items: [LeasedItem], hasMore: Bool) {
    let epoch = UInt64.random(in: 1 ... .max)
    var leased: [LeasedItem] = []
    var deadLetterCount = 0
    while leased.count < max {
      guard deadLetterCount < QueueCore.deadLetterLimit else { break }
      let items = leasable(
        min(max - leased.count, 1024), deferring: deferred, mayBeDeferred: mayBeDeferred && leased.isEmpty)
      guard !items.isEmpty else { break }
      for item in items {
        if ledger.rules.isExhausted(item) {
          ledger.moveToDeadLetters(item, .tooManyDeliveries, into: &frames)
          deadLetterCount += 1
        } else {
          let isSuspect = ledger.isSuspect(item)
          if isSuspect, !leased.isEmpty || !mayBeSuspect { return (leased, deadLetterCount > 0) }
          let receipt = ledger.lease(item, length: length, from: present, epoch: epoch, into: &frames)
          leased.append(LeasedItem(item: item, receipt: receipt, isSuspect: isSuspect))
          if isSuspect { return (leased, false) }
        }
      }
    }
    return (leased, deadLetterCount > 0)
  }

  /// Runs a closure for each receipt.
  ///
  /// - Returns: The receipts that are stale.
  mutating func staleReceipts(
    of receipts: [DeliveryReceipt],
    _ body: (DeliveryReceipt, inout QueueCore) throws(QueueRefusal) -> Void
  ) -> [DeliveryReceipt] {
    var stale: [DeliveryReceipt] = []
    for receipt in receipts {
      do throws(QueueRefusal) {
        try body(receipt, &self)
      } catch {
        // A stale receipt is the only possible error.
        stale.append(receipt)
      }
    }
    return stale
  }
}

/// The clocks of a queue: a wall clock for times in files, and a monotonic clock for leases and delays in this process.
struct QueueTime: Sendable {
  /// Returns the wall-clock time, in microseconds since 1970.
  let wall: @Sendable () -> Int64
  /// Returns the wall-clock time when the queue was opened, advanced by the monotonic clock, in microseconds.
  let steady: @Sendable () -> Int64

  /// Creates the clocks.
  ///
  /// - Parameters:
  ///   - clock: The monotonic clock.
  ///   - wall: A closure that returns the wall-clock time, in microseconds since 1970.
  init(clock: some Clock<Duration>, wall: @escaping @Sendable () -> Int64) {
    self.wall = wall
    let (start, opening) = (clock.now, wall())
    steady = { opening.addingSaturating(start.duration(to: clock.now).wholeMicroseconds) }
  }

  /// The current difference between the wall clock and the monotonic time, in microseconds.
  var offset: Int64 {
    let (offset, overflows) = wall().subtractingReportingOverflow(steady())
    return overflows ? 0 : offset
  }
}

/// A leased item that must be read.
struct LeasedItem: Sendable {
  var item: QueueItem
  var receipt: DeliveryReceipt
  var isSuspect: Bool
}
