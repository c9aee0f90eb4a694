/// The possible orders in which the callers' operations have taken effect so far, given their results.
///
/// A history is linearizable as long as there is at least one order. This is the search of Wing and Gong, done while
/// the
/// history is made. It keeps all orders, each as the resulting values and the results of the operations without a
/// response.
struct ModelledOrders: Hashable {
  /// The two values and the states of the callers, packed into one number: 8 bits for each value, then for each caller
  /// 2 bits for its progress and 5 bits for each of two results.
  private struct Order: Hashable {
    var bits: UInt64

    init(_ values: [UInt8]) {
      bits = UInt64(values[0]) | UInt64(values[1]) << 8
    }

    var values: (a: UInt8, b: UInt8) {
      get { (UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)) }
      set { bits = bits & ~0xFFFF | UInt64(newValue.a) | UInt64(newValue.b) << 8 }
    }

    subscript(caller: Int) -> UInt64 {
      get { bits >> UInt64(16 + 12 * caller) & 0xFFF }
      set {
        let shift = UInt64(16 + 12 * caller)
        bits = bits & ~(0xFFF << shift) | newValue << shift
      }
    }
  }

  private static let none: UInt64 = 0
  private static let begun: UInt64 = 1

  private static func done(_ a: UInt8, _ b: UInt8) -> UInt64 { 2 | UInt64(a) << 2 | UInt64(b) << 7 }

  private var orders: Set<Order>

  /// Creates a history that starts with these values of the two keys.
  init(_ values: [UInt8]) {
    orders = [Order(values)]
  }

  /// A Boolean value that indicates whether no order explains the results.
  var isEmpty: Bool { orders.isEmpty }

  /// Records that a caller has started its operation, which may take effect from now on.
  mutating func begin(_ caller: Int) {
    orders = Set(
      orders.map { order in
        var order = order
        order[caller] = ModelledOrders.begun
        return order
      })
  }

  /// Records the result of a caller's operation.
  ///
  /// - Parameters:
  ///   - caller: The caller.
  ///   - result: The result for each key; 0 for none.
  ///   - operations: The operations of all callers.
  mutating func end(_ caller: Int, returning result: (UInt8, UInt8), of operations: [ModelledOperation]) {
    var reached = orders
    var next = Array(orders)
    while let order = next.popLast() {
      for index in operations.indices where order[index] == ModelledOrders.begun {
        var after = order
        let values = order.values
        let result = operations[index].result(a: values.a, b: values.b)
        after.values = operations[index].values(a: values.a, b: values.b, writing: UInt8(2 + index))
        after[index] = ModelledOrders.done(result.0, result.1)
        if reached.insert(after).inserted { next.append(after) }
      }
    }
    let expected = ModelledOrders.done(result.0, result.1)
    orders = Set(reached.filter { $0[caller] == expected }.map { forgetting(caller, in: $0) })
  }

  /// Records that a caller's operation has ended without an effect or a result.
  mutating func drop(_ caller: Int) {
    orders = Set(orders.map { forgetting(caller, in: $0) })
  }

  private func forgetting(_ caller: Int, in order: Order) -> Order {
    var order = order
    order[caller] = ModelledOrders.none
    return order
  }
}

extension ModelledOperation {
  /// Returns the operation's result for the keys that it reads, given their values.
  func result(a: UInt8, b: UInt8) -> (UInt8, UInt8) {
    switch self {
    case .read, .readAndLeave, .readInVain, .reload, .update, .updateNothing: (a, 0)
    case .readBoth: (a, b)
    default: (0, 0)
    }
  }

  /// Returns the values of the keys after the operation, given their values before.
  func values(a: UInt8, b: UInt8, writing value: UInt8) -> (UInt8, UInt8) {
    switch self {
    case .write, .writeUnknowingly, .writeElsewhere, .writeElsewhereAndReload, .writePast, .writeBeside, .writeAbroad,
      .writeAbroadUnheard, .update:
      (value, b)
    case .remove: (0, b)
    case .writeJoined: (ModelledOperation.joinedValue(value), b)
    case .writeBoth, .writeBothBeside: (value, value)
    case .removeRange, .removeRangeBeside: (0, 0)
    case .replaceRange: (value, 0)
    default: (a, b)
    }
  }
}

/// An operation of a caller of a ``ModelledCache``.
enum ModelledOperation: Hashable, CaseIterable {
  /// Reads `a`.
  case read
  /// Reads `a`, and is cancelled before it receives the value. Its load continues.
  case readAndLeave
  /// Reads `a`; if that reads the base, the base fails.
  case readInVain
  /// Reads `a` from the base.
  case reload
  /// Reads `a` from the base in the background, after a reader found an old entry.
  case refresh
  /// Reads both keys in one call.
  case readBoth
  /// Writes `a`.
  case write
  /// Removes `a`.
  case remove
  /// Writes `a`, but the base fails without having written it.
  case writeInVain
  /// Writes `a`, but the base fails after having written it.
  case writeUnknowingly
  /// Writes both keys in one call.
  case writeBoth
  /// Removes both keys as a range.
  case removeRange
  /// Removes both keys as a range and writes `a`, in one batch.
  case replaceRange
  /// Reads and writes `a` as one step.
  case update
  /// Reads `a` as one step that could also write it, and decides not to.
  case updateNothing
  /// Removes the entry of `a` from the cache.
  case invalidate
  /// Writes `a` past the cache, and then invalidates it.
  case writeElsewhere
  /// Writes `a` past the cache, and then reads it from the base.
  case writeElsewhereAndReload
  /// Writes `a` past the cache without an invalidation. Readers may get old values, but none older than that of a
  /// reload.
  case writePast
  /// Evicts the entry of `a`.
  case evict
  /// Writes `a` past the cache, which the base reports.
  case writeBeside
  /// Writes both keys past the cache in one commit, which the base reports.
  case writeBothBeside
  /// Removes both keys as a range past the cache, which the base reports.
  case removeRangeBeside
  /// Writes `a` on another host. The base reports it late, and twice.
  case writeAbroad
  /// Writes `a` on another host. Its report is lost, so the base reports later that anything may have changed.
  case writeAbroadUnheard
  /// Writes `a` in one commit with a write of `a` past the cache, which takes effect after it.
  case writeJoined

  /// The operations over a base that does not report its changes.
  static let unreported = allCases.filter { !$0.isBeside && $0 != .writeJoined }

  /// The operations over a base that reports its changes.
  static let reported = allCases.filter { !$0.isPastTheCache }

  /// A Boolean value that indicates whether the operation writes past the cache without a report.
  var isPastTheCache: Bool {
    self == .writeElsewhere || self == .writeElsewhereAndReload || self == .writePast
  }

  /// A Boolean value that indicates whether the operation writes past the cache, which the base reports.
  var isBeside: Bool {
    self == .writeBeside || self == .writeBothBeside || self == .removeRangeBeside || isAbroad
  }

  /// A Boolean value that indicates whether the operation writes on another host.
  var isAbroad: Bool { self == .writeAbroad || self == .writeAbroadUnheard }

  /// The value of the write that shares a commit with this one.
  static func joinedValue(_ value: UInt8) -> UInt8 { value + 8 }
}
