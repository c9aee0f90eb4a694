#if Inspector
import Foundation
import HTTPTypes
import Larder

/// A queue, with values as the bytes of a codec.
protocol InspectedQueue: Sendable {
  func state() async throws -> QueueSummary
  /// Returns the items that are delivered next.
  func peek(max: Int) async throws -> [StoreEntry<[UInt8]>]
  func deadLetters(limit: Int, after sequence: UInt128) async throws -> [QueueDeadLetter]
  func enqueue(_ bytes: [UInt8], id: StoreKey?, priority: Int, group: StoreKey?) async throws -> EnqueuedItem
  /// Moves dead letters to the end of the queue, and returns their number.
  func requeue(_ keys: [StoreKey]) async throws -> Int
  /// Removes dead letters, and returns their number.
  func purge(_ keys: [StoreKey]) async throws -> Int
  /// Enqueues another value in place of a dead letter, and then removes the dead letter.
  func requeue(_ key: StoreKey, as bytes: [UInt8]) async throws
  func setPaused(_ isPaused: Bool) async throws
  /// Removes items.
  func remove(_ keys: [StoreKey]) async throws
  /// The queue as one that lists its leased items, groups and schedules, or `nil` if it cannot.
  var lists: (any InspectableQueue)? { get }
}

/// The counts of a queue, and whether it is paused.
struct QueueSummary: Sendable, Hashable {
  var statistics: QueueStatistics
  /// `nil` if the queue cannot be paused.
  var isPaused: Bool?
}

/// A dead letter as a page shows it.
struct QueueDeadLetter: Sendable, Hashable {
  var key: StoreKey
  var sequence: UInt128
  var attempts: Int
  /// The reason, with the error of a value that cannot be read.
  var reason: String
  var date: Date
  var bytes: [UInt8]?
}

struct TypedQueue<Value: Sendable>: InspectedQueue {
  let queue: any DurableQueue<Value>
  let pausable: (any PausableQueue<Value>)?
  let lists: (any InspectableQueue)?
  let contents: TypedContents<Value>

  func state() async throws -> QueueSummary {
    QueueSummary(statistics: try await queue.queueStatistics(), isPaused: try await pausable?.isPaused())
  }

  func peek(max: Int) async throws -> [StoreEntry<[UInt8]>] {
    try await queue.peek(max: max).map {
      StoreEntry(key: $0.key, value: try contents.encoded($0.value, forKey: $0.key))
    }
  }

  func deadLetters(limit: Int, after sequence: UInt128) async throws -> [QueueDeadLetter] {
    try await queue.deadLetters(limit: limit, after: sequence).map { letter in
      var (reason, bytes) = ("\(letter.reason)", nil as [UInt8]?)
      switch letter.value {
      case .success(let value): bytes = try contents.encoded(value, forKey: letter.key)
      case .failure(let error): reason += " (\(error.code))"
      }
      return QueueDeadLetter(
        key: letter.key, sequence: letter.sequence, attempts: letter.attempts, reason: reason, date: letter.date,
        bytes: bytes)
    }
  }

  func enqueue(_ bytes: [UInt8], id: StoreKey?, priority: Int, group: StoreKey?) async throws -> EnqueuedItem {
    let value = try contents.decoded(bytes, forKey: id ?? "new")
    let items = try await queue.enqueue([QueueInput(value, id: id, priority: priority, group: group)])
    guard let item = items.first else { throw PageFailure(.internalServerError, "the queue did not report the item") }
    return item
  }

  func requeue(_ keys: [StoreKey]) async throws -> Int {
    try await queue.requeue(keys)
  }

  func purge(_ keys: [StoreKey]) async throws -> Int {
    try await queue.purgeDeadLetters(keys)
  }

  func requeue(_ key: StoreKey, as bytes: [UInt8]) async throws {
    // An id stays remembered after its item died, so it is set and not enqueued. If the removal fails, the dead letter remains
    // beside the new item, and nothing is lost.
    try await contents.replaceValue(forKey: key, shown: nil, with: bytes)
    _ = try await queue.purgeDeadLetters([key])
  }

  func remove(_ keys: [StoreKey]) async throws {
    try await queue.apply(ChangeBatch(keys.map { .remove($0) }))
  }

  func setPaused(_ isPaused: Bool) async throws {
    guard let pausable else { throw PageFailure(.badRequest, "this queue cannot be paused") }
    if isPaused { try await pausable.pause() } else { try await pausable.resume() }
  }
}
#endif
