import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension QueueCore {
  /// The most items whose payloads are held at once while they are received.
  private static let sliceLength = 1024

  /// Leases the items that wait and came first.
  ///
  /// - Parameters:
  ///   - max: The most deliveries.
  ///   - length: How long the leases are, in microseconds.
  ///   - coder: Decodes the items.
  ///   - stopsAtFailure: Whether an item that cannot be handed out counts too.
  /// - Returns: The deliveries, and the errors of the items that were met before them and cannot be handed out. Those that
  ///   are damaged are dead letters; one that the disk refuses to give is tried again after the lease.
  /// - Throws: `FileError` where no item can be read for reasons that have nothing to do with it.
  mutating func receive<Element>(
    _ max: Int, length: Int64, _ coder: QueueCoder<Element>, stopsAtFailure: Bool = false
  ) throws -> [Result<Delivery<Element>, StoreError>] {
    let epoch = UInt64.random(in: 1 ... .max)
    var results: [Result<Delivery<Element>, StoreError>] = []
    var count = 0
    while count < max {
      let items = ledger.firstWaiting(min(max - count, QueueCore.sliceLength))
      guard !items.isEmpty else { break }
      let fresh = items.filter { !ledger.isExhausted($0) }
      for item in items where ledger.isExhausted(item) {
        try change { $0.kill(item.sequence, .tooManyDeliveries, into: &$1) }
      }
      for (item, payload) in zip(fresh, try readings(of: fresh)) {
        switch payload.flatMap({ coder.result(of: $0, forKey: item.key, during: .receive) }) {
        case .success(let value):
          let receipt = try change { $0.lease(item, length: length, epoch: epoch, into: &$1) }
          results.append(.success(Delivery(key: item.key, value: value, receipt: receipt)))
          count += 1
        case .failure(let error):
          if error.code == .ioFailed {
            try change { $0.postpone(item, delay: length, into: &$1) }
          } else {
            try change { $0.kill(item.sequence, .undecodable, into: &$1) }
          }
          results.append(.failure(error))
          if stopsAtFailure { count += 1 }
        }
      }
    }
    return results
  }

  /// Reads payloads, one by one where the disk refuses one of them.
  private func readings(of items: [QueueItem]) throws -> [Result<ArraySlice<UInt8>?, StoreError>] {
    do throws(FileError) {
      return try payloads(of: items).map { .success($0) }
    } catch {
      guard isAboutOneItem(error) else { throw error }
      return try items.map(reading)
    }
  }

  /// Whether an error says nothing about other items: a place of the disk is bad, or somebody has removed a segment.
  private func isAboutOneItem(_ error: FileError) -> Bool {
    error.errorNumber == EIO || log.folder.hasLost(error)
  }

  private func reading(of item: QueueItem) throws(FileError) -> Result<ArraySlice<UInt8>?, StoreError> {
    do throws(FileError) {
      return .success(try payloads(of: [item])[0])
    } catch {
      guard isAboutOneItem(error) else { throw error }
      return .failure(
        StoreError(
          .ioFailed, during: .receive, store: log.folder.name, key: item.key,
          message: "the item could not be read; it is delivered later", underlying: error, isRetryable: true))
    }
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

  /// Makes everything durable that was written before.
  ///
  /// - Throws: ``StoreError``; `FileError`.
  mutating func synchronize() throws {
    guard log.folder.access == .readWrite else { return }
    if log.isSealed { try makeReady() }
    try log.synchronize()
  }
}
