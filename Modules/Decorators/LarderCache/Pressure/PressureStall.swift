/// What Linux tells of the time lost for want of memory, in `/proc/pressure/memory` or a control group's
/// `memory.pressure`.
///
/// ```
/// some avg10=0.00 avg60=0.00 avg300=0.00 total=0
/// full avg10=0.00 avg60=0.00 avg300=0.00 total=0
/// ```
struct PressureStall: Equatable, Sendable {
  /// The part of the last ten seconds, in percent, in which some tasks waited for memory.
  var some: Double

  /// The part of the last ten seconds, in percent, in which all tasks waited for memory; 0 where that is not told.
  var full: Double

  /// Reads what the system tells.
  ///
  /// - Parameter text: The text of the file.
  /// - Returns: `nil` where it is none.
  init?(_ text: String) {
    var averages: [Substring: Double] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ")
      guard let kind = words.first, let word = words.first(where: { $0.hasPrefix("avg10=") }) else { continue }
      averages[kind] = Double(word.dropFirst("avg10=".count))
    }
    guard let some = averages["some"] else { return nil }
    self.some = some
    full = averages["full"] ?? 0
  }

  /// What that means for who could do with less memory.
  var pressure: MemoryPressure {
    if full >= 10 { return .critical }
    return some >= 10 ? .warning : .none
  }
}
