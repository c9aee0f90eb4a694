/// What Linux tells of the time lost for want of memory, in `/proc/pressure/memory` or a control group's
/// `memory.pressure`.
///
/// ```
/// some avg10=0.00 avg60=0.00 avg300=0.00 total=0
/// full avg10=0.00 avg60=0.00 avg300=0.00 total=0
/// ```
struct PressureStall: Equatable, Sendable {
  /// The microseconds, in all, in which some tasks waited for memory.
  var some: UInt64

  /// The microseconds, in all, in which all tasks waited for memory; 0 where that is not told.
  var full: UInt64

  /// Reads what the system tells.
  ///
  /// - Parameter text: The text of the file.
  /// - Returns: `nil` where it is none.
  init?(_ text: String) {
    var totals: [Substring: UInt64] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ")
      guard let kind = words.first, let word = words.first(where: { $0.hasPrefix("total=") }) else { continue }
      totals[kind] = UInt64(word.dropFirst("total=".count))
    }
    guard let some = totals["some"] else { return nil }
    self.some = some
    full = totals["full"] ?? 0
  }
}

/// Tells memory pressure by the time lost since the last look.
///
/// The averages that the system tells as well stay high for long after the pressure has ended.
struct PressureGauge: Sendable {
  /// The part of the time that has to be lost.
  static let share = 0.1

  /// For how long the same pressure is not told again: what is given up for it takes time to show.
  static let coolDown: Duration = .seconds(10)

  private var last: (stall: PressureStall, time: Duration)?
  private var told: (pressure: MemoryPressure, time: Duration)?

  /// Takes a look.
  ///
  /// - Parameters:
  ///   - stall: What the system tells; `nil` where it does not tell any more.
  ///   - time: What time it is.
  /// - Returns: The pressure since the last look, unless that was told a short time ago.
  mutating func pressure(of stall: PressureStall?, at time: Duration) -> MemoryPressure {
    defer { last = stall.map { ($0, time) } }
    guard let stall, let last, time > last.time else { return .none }
    let limit = (time - last.time) / .microseconds(1) * PressureGauge.share
    func isLost(_ total: KeyPath<PressureStall, UInt64>) -> Bool {
      Double(stall[keyPath: total]) - Double(last.stall[keyPath: total]) >= limit
    }
    let pressure: MemoryPressure = isLost(\.full) ? .critical : isLost(\.some) ? .warning : .none
    if let told, time - told.time < PressureGauge.coolDown, pressure <= told.pressure { return .none }
    if pressure > .none { told = (pressure, time) }
    return pressure
  }
}
