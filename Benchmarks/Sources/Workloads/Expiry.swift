import Foundation
import Larder
import LarderCBOR
import LarderExpiry
import LarderLMDB

/// Reads, writes and purges of a store with expiry.
public enum Expiry {
  private static let operationCount = 100_000
  private static let keyCount = 1000
  private static let timeToLive = Duration.seconds(86_400)

  // A read may cost 100 ns more, which is half of a get from memory.
  static let comparisons = [
    Comparison(
      gets("get through .expiring(.after)", .after(timeToLive)),
      beside: [Comparison.Yardstick(baseGets, limit: 1.5)]),
    Comparison(
      gets("get through .expiring(.sliding)", .sliding(timeToLive)),
      beside: [Comparison.Yardstick(baseGets, limit: 1.5)]),
    Comparison(
      recordGets, beside: [Comparison.Yardstick(baseRecordGets)]),
    Comparison(puts, beside: [Comparison.Yardstick(basePuts)]),
  ]

  /// Purges a store of expired records in LMDB.
  ///
  /// - Parameter count: The number of records.
  /// - Returns: The durations of its updates, during which other writers waited, in ascending order.
  public static func updates(purging count: Int) async throws -> [Duration] {
    let folder = try ScratchFolder()
    let store = try await LMDBStore(
      path: folder.newPath(), codec: .cbor(User.self).expiring(), durability: .buffered)
    let past = ExpiryDeadline(.distantPast)
    for start in stride(from: 0, to: count, by: 10_000) {
      let numbers = start..<min(count, start + 10_000)
      try await store.apply(
        ChangeBatch(numbers.map { .set(SampleRecords.key($0), Expiring(User(number: $0), deadline: past)) }))
    }
    let timed = UpdateTimer(store)
    let purged = try await timed.expiring().purgeExpired()
    guard purged == count else { throw StoreError(.ioFailed, during: .purgeExpired, message: "\(purged) were purged") }
    try await timed.close()
    try folder.remove()
    return timed.durations
  }

  private static let keys = SampleRecords.shuffledNumbers(keyCount).map(SampleRecords.key)

  // MARK: In memory

  private static func gets(_ name: String, _ timeToLive: TimeToLive) -> Workload {
    Workload(name, operationCount: operationCount) { _ in
      let store = MemoryStore<Expiring<Int>>().expiring(timeToLive)
      try await store.apply(ChangeBatch(keys.enumerated().map { .set($1, $0) }))
      return {
        var sum = 0
        for index in 0..<operationCount { sum &+= try await store.value(forKey: keys[index % keyCount]) ?? 0 }
        consume(sum)
      }
    }
  }

  private static let baseGets = Workload("get from the MemoryStore below", operationCount: operationCount) { _ in
    let store = MemoryStore<Expiring<Int>>()
    try await store.expiring(.after(timeToLive)).apply(ChangeBatch(keys.enumerated().map { .set($1, $0) }))
    return { try await get(store) }
  }

  /// Reads values as a generic program does.
  private static func get(_ store: some DataStore<Expiring<Int>>) async throws {
    var sum = 0
    for index in 0..<operationCount { sum &+= try await store.value(forKey: keys[index % keyCount])?.value ?? 0 }
    consume(sum)
  }

  private static let puts = Workload("put through .expiring(.after)", operationCount: operationCount) { _ in
    let store = MemoryStore<Expiring<Int>>().expiring(.after(timeToLive))
    return {
      for index in 0..<operationCount { try await store.setValue(index, forKey: keys[index % keyCount]) }
    }
  }

  private static let basePuts = Workload("put into the MemoryStore below", operationCount: operationCount) { _ in
    let store = MemoryStore<Expiring<Int>>()
    let deadline = ExpiryDeadline(.distantFuture)
    return {
      for index in 0..<operationCount {
        try await store.setValue(Expiring(index, deadline: deadline), forKey: keys[index % keyCount])
      }
    }
  }

  // MARK: In LMDB

  private static func filledStore(in folder: ScratchFolder) async throws -> LMDBStore<Expiring<User>> {
    let store = try await LMDBStore(path: folder.newPath(), codec: .cbor(User.self).expiring())
    try await store.expiring(.after(timeToLive)).apply(
      ChangeBatch(keys.enumerated().map { .set($1, User(number: $0)) }))
    return store
  }

  private static let recordGets = Workload(
    "get of a record through .expiring, from LMDB", operationCount: operationCount
  ) { folder in
    let store = try await filledStore(in: folder).expiring(.after(timeToLive))
    return {
      for index in 0..<operationCount { consume(try await store.value(forKey: keys[index % keyCount])?.id) }
    }
  }

  private static let baseRecordGets = Workload("get from the LMDBStore below", operationCount: operationCount) {
    folder in
    let store = try await filledStore(in: folder)
    return {
      for index in 0..<operationCount { consume(try store.value(forKey: keys[index % keyCount])?.value.id) }
    }
  }
}
