/// How short of memory the system is.
enum MemoryPressure: Int, Comparable, Sendable {
  case none
  /// Programs wait for memory now and then.
  case warning
  /// All programs stand still for want of memory, or soon will.
  case critical

  static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
    left.rawValue < right.rawValue
  }
}
