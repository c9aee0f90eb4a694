public import Foundation
public import Larder

/// An item that a ``StoreQueue`` gets again and again, at a fixed interval.
///
/// ```swift
/// let report = QueueSchedule(name: "report", every: .seconds(3600), from: midnight) { due in Report(hour: due) }
/// try await queue.run([report])  // in a task of each process
/// ```
///
/// The queue records in its base up to which due time there have been items, in the same atomic step as the items. No due
/// time has a second item, however many processes run the schedule. Due times that pass while no process runs it are missed;
/// ``missedRuns`` says what becomes of them.
///
/// If the wall clock was ahead, the recorded due time can be far in the future. The schedule continues with the next due time
/// as soon as the clock is right again.
public struct QueueSchedule<Element: Sendable>: Sendable {
  /// The name of the schedule in the queue.
  public let name: StoreKey

  /// The time between two due times.
  public let interval: Duration

  /// A due time, before and after which the others are multiples of the interval.
  public let start: Date

  /// The priority of the items.
  public let priority: Int

  /// The group of the items, or `nil`.
  public let group: StoreKey?

  /// The treatment of due times that passed while no process ran the schedule.
  public let missedRuns: MissedRunPolicy

  let makeElement: @Sendable (Date) throws -> Element

  /// Creates a schedule.
  ///
  /// ```swift
  /// let digest = QueueSchedule(
  ///   name: "digest", every: .seconds(86_400), from: midnight, missedRuns: .skip) { due in Report(hour: due) }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the schedule, of 1 to 64 bytes. Schedules with the same name in one queue are the same.
  ///   - interval: The time between two due times, at least one millisecond.
  ///   - start: A due time, to which all others have a distance of a multiple of the interval. A schedule that is new to
  ///     the queue has no item for due times that have passed.
  ///   - priority: The priority of the items. Defaults to 0.
  ///   - group: The group of the items, so one waits until the one before is finished. Defaults to `nil`.
  ///   - missedRuns: The treatment of due times that passed while no process ran the schedule. Defaults to
  ///     ``MissedRunPolicy/runOnce``, because most periodic work catches up in one run, and a long interruption or a wrong
  ///     clock does not fill the queue.
  ///   - makeElement: A closure that returns the item for a due time. It can be called more than once for it.
  public init(
    name: StoreKey, every interval: Duration, from start: Date, priority: Int = 0, group: StoreKey? = nil,
    missedRuns: MissedRunPolicy = .runOnce, makeElement: @escaping @Sendable (_ due: Date) throws -> Element
  ) {
    self.name = name
    self.interval = interval
    self.start = start
    self.priority = priority
    self.group = group
    self.missedRuns = missedRuns
    self.makeElement = makeElement
  }
}

/// The treatment of due times of a ``QueueSchedule`` that passed while no process ran it.
public enum MissedRunPolicy: Sendable, Hashable {
  /// Only a due time that passed at most a minute ago has an item.
  case skip

  /// Only the latest due time that has passed has an item.
  case runOnce

  /// Only the latest due times that have passed have items: as many as the number says, at least 1.
  case runAll(atMost: Int)

  /// Returns the number of the latest due times that have items.
  ///
  /// - Parameter lateness: The time since the latest due time, in microseconds.
  func runCount(lateness: Int64) -> Int {
    switch self {
    case .skip: lateness <= WallClock.tolerance.wholeMicroseconds ? 1 : 0
    case .runOnce: 1
    case .runAll(let count): count
    }
  }
}

/// The due times of a schedule, in microseconds since 1970.
///
/// This is plain state without any I/O.
struct DueTimes: Sendable {
  let interval: Int64
  let start: Int64

  /// Returns the time up to which no due time gets an item any more.
  ///
  /// - Parameters:
  ///   - last: The due time up to which there have been items, or `nil` for a new schedule.
  ///   - now: The current time.
  ///   - policy: The treatment of missed due times.
  func lastSettled(after last: Int64?, now: Int64, _ policy: MissedRunPolicy) -> Int64 {
    guard let last else { return now.addingSaturating(-1) }
    let latest = next(after: now).addingSaturating(-interval)
    // A clock that was ahead has recorded it. One interval is tolerated, so that no due time is repeated for a small change.
    let tolerance = max(interval, WallClock.tolerance.wholeMicroseconds)
    if last > now.addingSaturating(tolerance) { return latest }
    let count = Int64(policy.runCount(lateness: now.addingSaturating(-latest)))
    let (length, overflows) = count.multipliedReportingOverflow(by: interval)
    return overflows ? last : max(last, latest.addingSaturating(-length))
  }

  /// Returns the first due time after a time.
  func next(after time: Int64) -> Int64 {
    let (distance, overflows) = time.subtractingReportingOverflow(start)
    guard !overflows else { return .max }
    let steps = distance >= 0 ? distance / interval + 1 : (distance + 1) / interval
    let (product, overflow) = steps.multipliedReportingOverflow(by: interval)
    return overflow ? .max : start.addingSaturating(product)
  }
}

extension StoreQueue {
  /// The most due times whose items are enqueued in one commit.
  private static var dueTimeLimit: Int { 100 }

  /// The longest time between two looks at the clock, so a changed wall clock is noticed.
  static var longestSleep: Duration { .seconds(30) }

  /// Enqueues the items of the due times of a schedule that have passed, as ``QueueSchedule/missedRuns`` says.
  ///
  /// Nothing is enqueued twice if several processes call this method at the same time. If the wall clock is set back, no
  /// item is enqueued until it reaches the next due time again. If it was more than the interval and more than a minute ahead, the
  /// schedule continues with the next due time.
  ///
  /// ```swift
  /// let (count, next) = try await queue.enqueueDue(report)
  /// print("\(count) reports were due; the next one is due at \(next)")
  /// ```
  ///
  /// - Parameter schedule: The schedule.
  /// - Returns: The number of items, and the next due time.
  /// - Throws: `StoreError` with `invalidArgument` if the schedule is not as described; the errors of
  ///   ``enqueue(_:)``; the error of the closure of the schedule, with no item for its due time and later ones.
  @discardableResult
  public func enqueueDue(_ schedule: QueueSchedule<Element>) async throws -> (count: Int, next: Date) {
    try check(schedule)
    let times = DueTimes(interval: schedule.interval.wholeMicroseconds, start: schedule.start.microsecondsSince1970)
    let key = layout.scheduleKey(schedule.name)
    return try await running(.enqueue) {
      var count = 0
      while true {
        let (added, next) = try await committing(.enqueue) { () -> (QueuePlan, (Int, Int64)) in
          var plan = newPlan()
          plan.read(try await read([key], .enqueue))
          let recorded = try lastDueTime(plan.value(forKey: key), schedule.name)
          var last = times.lastSettled(after: recorded, now: plan.now, schedule.missedRuns)
          var added = 0
          while added < Self.dueTimeLimit, times.next(after: last) <= plan.now {
            last = times.next(after: last)
            try insert(schedule, due: last, into: &plan)
            added += 1
          }
          // A new schedule is recorded although nothing is due, or its first due time could be missed.
          if last != recorded {
            plan.set([QueueLayout.formatVersion] + last.bigEndianBytes, forKey: key)
          }
          return (plan, (added, times.next(after: last)))
        }
        count += added
        if added < Self.dueTimeLimit { return (count, Date(microsecondsSince1970: next)) }
      }
    }
  }

  /// Enqueues the items of schedules when they are due, until the task is cancelled or the queue is closed.
  ///
  /// Several processes may run the same schedules. After an error, call the method again: it continues where it ended.
  ///
  /// - Parameter schedules: The schedules.
  /// - Throws: The errors of ``enqueueDue(_:)``; `CancellationError`.
  public func run(_ schedules: [QueueSchedule<Element>]) async throws {
    while true {
      var pause = Self.longestSleep
      for schedule in schedules {
        let next = try await enqueueDue(schedule).next
        let remaining = next.microsecondsSince1970.addingSaturating(-microseconds)
        pause = min(pause, max(.microseconds(remaining), .milliseconds(1)))
      }
      try await clock.sleep(for: pause)
    }
  }

  /// Removes the record of a schedule, so a later schedule with its name is new to the queue.
  ///
  /// ```swift
  /// try await queue.removeSchedule("report")
  /// ```
  ///
  /// - Parameter name: The name of the schedule. A name without a record is ignored.
  /// - Throws: `StoreError` with `closed`; the errors of the base.
  public func removeSchedule(_ name: StoreKey) async throws {
    try information.checkWritable(for: .enqueue)
    try await running(.enqueue) {
      try await callingBase(.enqueue) { try await base.apply([.remove(layout.scheduleKey(name))]) }
    }
  }

  private func check(_ schedule: QueueSchedule<Element>) throws {
    func require(_ isValid: Bool, _ message: String) throws {
      guard !isValid else { return }
      throw StoreError(.invalidArgument, during: .enqueue, store: information.name, message: message)
    }
    let length = schedule.name.count
    try require((1...64).contains(length), "the name of a schedule must have 1 to 64 bytes, not \(length)")
    try require(
      schedule.interval >= .milliseconds(1),
      "the interval of a schedule must be at least a millisecond, not \(schedule.interval)")
    if case .runAll(let count) = schedule.missedRuns {
      try require(count >= 1, "the number of missed runs must be at least 1, not \(count)")
    }
  }

  private func lastDueTime(_ record: [UInt8]?, _ name: StoreKey) throws -> Int64? {
    guard let record else { return nil }
    guard let time = Self.dueTime(in: record) else {
      throw StoreError(
        .corrupted, during: .enqueue, store: information.name, key: name,
        message: "the record of the schedule is damaged; remove it with removeSchedule(_:)")
    }
    return time
  }

  /// Returns the latest due time in the record of a schedule, or `nil` if the record is damaged.
  static func dueTime(in record: [UInt8]) -> Int64? {
    guard record.count == 9, record[0] == QueueLayout.formatVersion else { return nil }
    return Int64(bigEndianBytes: record[1...])
  }

  private func insert(_ schedule: QueueSchedule<Element>, due: Int64, into plan: inout QueuePlan) throws {
    let element = try schedule.makeElement(Date(microsecondsSince1970: due))
    let input = QueueInput(element, priority: schedule.priority, group: schedule.group)
    try information.check([input])
    let sequence = nextSequence()
    let item = ItemRecord(
      key: sequence.generatedKey, group: schedule.group, priority: Int8(schedule.priority), hasCallersKey: false,
      arrival: plan.now)
    var payload: [UInt8] = []
    try coder.append(element, forKey: item.key, to: &payload, during: .enqueue)
    plan.insert(sequence, item, delay: 0, payload: payload)
  }
}
