/// A queue that lists the items that consumers hold, its groups and its schedules.
///
/// Find out which items are being processed, and why another one is not delivered:
///
/// ```swift
/// var position: StoreKey?
/// repeat {
///   let page = try await queue.leasedItems(limit: 100, after: position)
///   for item in page.entries { print(item.key, "attempt", item.attempt, "until", item.deadline) }
///   position = page.next
/// } while position != nil
/// ```
///
/// Each method returns a page of at most 1,000 entries, and reads a bounded number of records for it, however many items the queue
/// has. A page can therefore have fewer entries than you asked for, or none, although more follow. ``QueuePage/next`` is `nil`
/// on the last page only, unless you ask for no entries.
///
/// Nothing is changed, and no value is read. The records of a page are read at moments close to each other, and the queue
/// changes between two pages: an entry that stays as it is appears once, and one that changes can appear twice or not at all.
///
/// Decorators forward this capability. If the type of a queue is known only at run time, use
/// ``AnyDataStore/inspectableQueue``.
public protocol InspectableQueue<Value>: DurableQueue {
  /// Returns items that were received and neither acknowledged nor released, and whose leases have not ended.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of items.
  ///   - position: ``QueuePage/next`` of the page before, or `nil` for the first page.
  /// - Returns: A page of items, in an order that the queue chooses.
  /// - Throws: ``StoreError`` with `invalidArgument` if the limit is negative, or the position is not one of this queue;
  ///   `closed`; `ioFailed`. `CancellationError`.
  func leasedItems(limit: Int, after position: StoreKey?) async throws -> QueuePage<HeldItem>

  /// Returns the groups that have items.
  ///
  /// A queue without groups returns none.
  ///
  /// ```swift
  /// let blocked = try await queue.groups(limit: 100, after: nil).entries.filter { $0.blocker != nil }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The maximum number of groups.
  ///   - position: ``QueuePage/next`` of the page before, or `nil` for the first page.
  /// - Returns: A page of groups, in an order that the queue chooses.
  /// - Throws: The same errors as ``leasedItems(limit:after:)``.
  func groups(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueGroup>

  /// Returns the records of the schedules that have enqueued items.
  ///
  /// A queue without schedules returns none.
  ///
  /// ```swift
  /// for schedule in try await queue.schedules(limit: 100, after: nil).entries {
  ///   print(schedule.name, schedule.lastDueDate ?? "damaged")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The maximum number of schedules.
  ///   - position: ``QueuePage/next`` of the page before, or `nil` for the first page.
  /// - Returns: A page of schedules, by their names.
  /// - Throws: The same errors as ``leasedItems(limit:after:)``.
  func schedules(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueScheduleRecord>
}

extension StoreDecorator where Base: InspectableQueue {
  /// Returns leased items of the base; see ``InspectableQueue/leasedItems(limit:after:)``.
  public func leasedItems(limit: Int, after position: StoreKey?) async throws -> QueuePage<HeldItem> {
    try await forward(.leasedItems, of: nil) { try await base.leasedItems(limit: limit, after: position) }
  }

  /// Returns groups of the base; see ``InspectableQueue/groups(limit:after:)``.
  public func groups(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueGroup> {
    try await forward(.groups, of: nil) { try await base.groups(limit: limit, after: position) }
  }

  /// Returns schedules of the base; see ``InspectableQueue/schedules(limit:after:)``.
  public func schedules(limit: Int, after position: StoreKey?) async throws -> QueuePage<QueueScheduleRecord> {
    try await forward(.schedules, of: nil) { try await base.schedules(limit: limit, after: position) }
  }
}
