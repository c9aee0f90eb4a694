public import Foundation

/// A part of a list of an ``InspectableQueue``.
///
/// ```swift
/// let first = try await queue.groups(limit: 20, after: nil)
/// if let next = first.next { print(try await queue.groups(limit: 20, after: next).entries) }
/// ```
public struct QueuePage<Entry: Sendable>: Sendable {
  /// The entries.
  public var entries: [Entry]

  /// The position after which the list continues, or `nil` on the last page.
  ///
  /// Its bytes have a meaning for the queue only. You can pass it to the same method later and in another process.
  public var next: StoreKey?

  /// Creates a page.
  ///
  /// - Parameters:
  ///   - entries: The entries.
  ///   - next: The position after which the list continues. Defaults to `nil`, for the last page.
  public init(entries: [Entry], next: StoreKey? = nil) {
    self.entries = entries
    self.next = next
  }
}

extension QueuePage: Equatable where Entry: Equatable {}

extension QueuePage: Hashable where Entry: Hashable {}

/// An item that is not delivered before a deadline, because a consumer has it or because it is delayed.
public struct HeldItem: Sendable, Hashable {
  /// The key of the item.
  public var key: StoreKey

  /// The item's position in the order of arrival.
  public var sequence: UInt128

  /// The group of the item, or `nil`.
  public var group: StoreKey?

  /// The number of deliveries so far; that of the present consumer is one of them.
  public var attempt: Int

  /// A Boolean value that indicates whether a consumer has the item.
  ///
  /// Otherwise, it is delayed.
  public var isLeased: Bool

  /// The date when the lease or the delay ends, by the clock that the queue uses for it.
  public var deadline: Date

  /// Creates a description of an item.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - sequence: The item's position in the order of arrival.
  ///   - group: The group of the item. Defaults to `nil`.
  ///   - attempt: The number of deliveries so far.
  ///   - isLeased: A Boolean value that indicates whether a consumer has the item. Defaults to `true`.
  ///   - deadline: The date when the lease or the delay ends.
  public init(
    key: StoreKey, sequence: UInt128, group: StoreKey? = nil, attempt: Int, isLeased: Bool = true, deadline: Date
  ) {
    self.key = key
    self.sequence = sequence
    self.group = group
    self.attempt = attempt
    self.isLeased = isLeased
    self.deadline = deadline
  }
}

/// A group of a queue, of which one item at a time is delivered.
public struct QueueGroup: Sendable, Hashable {
  /// The number up to which the items of a group are counted.
  public static let countLimit = 100

  /// The name of the group.
  public var name: StoreKey

  /// The number of items, with the one that a consumer has; at most ``countLimit``, also if the group has more.
  public var count: Int

  /// The item that holds back all others, because it is leased or delayed, or `nil` if the first item can be received.
  public var blocker: HeldItem?

  /// Creates a description of a group.
  ///
  /// - Parameters:
  ///   - name: The name of the group.
  ///   - count: The number of items, at most ``countLimit``.
  ///   - blocker: The item that holds back all others. Defaults to `nil`.
  public init(name: StoreKey, count: Int, blocker: HeldItem? = nil) {
    self.name = name
    self.count = count
    self.blocker = blocker
  }
}

/// The record of a schedule in a queue.
///
/// The rule of the schedule, such as its interval, is in the programs that run it, and not in the queue.
public struct QueueScheduleRecord: Sendable, Hashable {
  /// The name of the schedule.
  public var name: StoreKey

  /// The latest due date that has its item or was missed, or `nil` if the record is damaged.
  public var lastDueDate: Date?

  /// Creates a record.
  ///
  /// - Parameters:
  ///   - name: The name of the schedule.
  ///   - lastDueDate: The latest due date that has its item or was missed.
  public init(name: StoreKey, lastDueDate: Date?) {
    self.name = name
    self.lastDueDate = lastDueDate
  }
}

extension StoreInformation {
  /// The most entries of a ``QueuePage``.
  private static var longestQueuePage: Int { 1000 }

  /// Checks the number of entries of a page that an ``InspectableQueue`` was asked for.
  ///
  /// - Parameters:
  ///   - limit: The number.
  ///   - operation: The operation that received it.
  /// - Returns: The number, or 1,000 if it is greater.
  /// - Throws: ``StoreError`` with `invalidArgument` if it is negative.
  public func checked(pageLimit limit: Int, for operation: StoreOperation) throws -> Int {
    try check(limit: limit, for: operation)
    return min(limit, Self.longestQueuePage)
  }

  /// Returns the error about a position that is not one of a list; see ``QueuePage/next``.
  ///
  /// - Parameter operation: The operation that received it.
  public func invalidPosition(during operation: StoreOperation) -> StoreError {
    StoreError(
      .invalidArgument, during: operation, store: name,
      message: "the position is not one of this list; pass `next` of a page of the same list, or nil")
  }
}
