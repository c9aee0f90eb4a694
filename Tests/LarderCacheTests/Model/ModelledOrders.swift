/// The orders in which the operations of callers may have taken effect so far, given what they have come to.
///
/// A history is linearizable as long as there is one. It is the search of Wing and Gong, made while the history goes
/// on: all orders are kept at once, each as the values that they leave and the results of operations that have no
/// response yet.
struct ModelledOrders: Hashable {
  /// The two values, and the slots of the callers, packed into one number: 8 bits for each value, then for each caller
  /// 2 bits that tell how far its operation is and 5 for each of two results.
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

  /// Begins with the values of the two keys.
  init(_ values: [UInt8]) {
    orders = [Order(values)]
  }

  /// Whether no order explains what was returned.
  var isEmpty: Bool { orders.isEmpty }

  /// Notes that a caller has begun its operation, which may take effect from now on.
  mutating func begin(_ caller: Int) {
    orders = Set(
      orders.map { order in
        var order = order
        order[caller] = ModelledOrders.begun
        return order
      })
  }

  /// Notes that the operation of a caller has returned something.
  ///
  /// - Parameters:
  ///   - caller: The caller.
  ///   - result: What was returned, of each key; 0 for nothing.
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

  /// Notes that the operation of a caller has ended without having changed anything, and returned nothing.
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
  /// What the operation returns where the keys have some values: those that it reads.
  func result(a: UInt8, b: UInt8) -> (UInt8, UInt8) {
    switch self {
    case .read, .readAndLeave, .readInVain, .reload, .update: (a, 0)
    case .readBoth: (a, b)
    default: (0, 0)
    }
  }

  /// What the operation leaves where the keys have some values.
  func values(a: UInt8, b: UInt8, writing value: UInt8) -> (UInt8, UInt8) {
    switch self {
    case .write, .writeUnknowingly, .writeElsewhere, .writeElsewhereAndReload, .writePast, .update:
      (value, b)
    case .remove: (0, b)
    case .writeBoth: (value, value)
    case .removeRange: (0, 0)
    case .replaceRange: (value, 0)
    default: (a, b)
    }
  }
}
