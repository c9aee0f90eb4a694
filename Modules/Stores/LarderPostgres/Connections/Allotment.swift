#if Postgres
/// Which connection serves whom; a plain value, tested by itself.
///
/// An owner is a store, a queue or a database. One that has no connection gets one beyond the limit, so calls which
/// wait for a lock never stop those of other stores.
struct Allotment<Resource: AnyObject> {
  /// A way for a caller to get a connection.
  enum Turn {
    case use(Resource)
    /// It makes one, and then calls `finishConnecting`.
    case connect
  }

  private struct Waiter {
    let number: Int
    let owner: ObjectIdentifier
  }

  private let limit: Int

  /// The connections that serve no caller, and since when; the latest last.
  private var free: [(resource: Resource, since: ContinuousClock.Instant)] = []

  /// The numbers of connections by their owners, with those that are being made.
  private var holdings: [ObjectIdentifier: Int] = [:]

  /// Those who wait for a connection, the first first.
  private var waiters: [Waiter] = []

  /// The connections, free or taken.
  private var connected: Set<ObjectIdentifier> = []

  /// The number of connections that are being made.
  private(set) var connectingCount = 0

  /// The number of connections that serve a caller, or are being made for one.
  private(set) var takenCount = 0

  /// The number of connections.
  var connectedCount: Int { connected.count }

  /// The number of callers that wait.
  var waiterCount: Int { waiters.count }

  /// A Boolean value that indicates whether there are more connections than the limit.
  var exceedsLimit: Bool { connectedCount > limit }

  /// Creates an allotment without connections.
  init(limit: Int) {
    self.limit = limit
  }

  /// Returns how an owner gets a connection, or `nil` if it must wait.
  ///
  /// - Parameters:
  ///   - owner: The owner.
  ///   - mayConnect: A Boolean value that indicates whether a connection may be made although there are others that the
  ///     owner can wait for.
  mutating func take(for owner: ObjectIdentifier, mayConnect: Bool) -> Turn? {
    guard takenCount < limit || holdings[owner] == nil else { return nil }
    let turn: Turn
    if let resource = free.popLast()?.resource {
      turn = .use(resource)
    } else {
      // One after another, while there is one to wait for.
      guard connected.isEmpty || mayConnect && connectingCount == 0 else { return nil }
      connectingCount += 1
      turn = .connect
    }
    takenCount += 1
    holdings[owner, default: 0] += 1
    return turn
  }

  /// Notes that the owner which makes a connection has it, or that it could not be made.
  mutating func finishConnecting(_ resource: Resource?) {
    connectingCount -= 1
    if let resource { connected.insert(ObjectIdentifier(resource)) }
  }

  /// Takes back the turn of an owner.
  ///
  /// - Parameters:
  ///   - resource: The connection, which may be lost, or `nil` if there wasn't one.
  ///   - owner: The owner.
  ///   - now: The current time.
  mutating func give(_ resource: Resource?, of owner: ObjectIdentifier, now: ContinuousClock.Instant) {
    if let resource, connected.contains(ObjectIdentifier(resource)) { free.append((resource, now)) }
    takenCount -= 1
    holdings[owner, default: 1] -= 1
    if holdings[owner] == 0 { holdings[owner] = nil }
  }

  /// Removes a connection that was lost.
  ///
  /// - Returns: A Boolean value that indicates whether it was there.
  mutating func lose(_ resource: Resource) -> Bool {
    free.removeAll { $0.resource === resource }
    return connected.remove(ObjectIdentifier(resource)) != nil
  }

  /// Removes connections that serve no caller: those beyond the limit that are unused since a time, or all.
  ///
  /// - Parameter time: The time, or `nil` for all.
  /// - Returns: The connections, which the caller must close.
  mutating func removeFree(unusedSince time: ContinuousClock.Instant?) -> [Resource] {
    let excess = time.map { time in min(max(0, connectedCount - limit), free.prefix { $0.since <= time }.count) }
    let removed = free.prefix(excess ?? free.count).map(\.resource)
    free.removeFirst(removed.count)
    connected.subtract(removed.map { ObjectIdentifier($0) })
    return removed
  }

  mutating func wait(_ number: Int, for owner: ObjectIdentifier) {
    waiters.append(Waiter(number: number, owner: owner))
  }

  /// Removes a caller that gave up waiting.
  mutating func giveUp(_ number: Int) {
    waiters.removeAll { $0.number == number }
  }

  /// Returns the next caller that gets a connection: the first of those whose owner has none, or else the first.
  mutating func serveNext(mayConnect: Bool) -> (number: Int, turn: Turn)? {
    guard !waiters.isEmpty else { return nil }
    let index = waiters.firstIndex { holdings[$0.owner] == nil } ?? 0
    return take(for: waiters[index].owner, mayConnect: mayConnect).map { (waiters.remove(at: index).number, $0) }
  }
}

extension Allotment.Turn: Sendable where Resource: Sendable {}
#endif
