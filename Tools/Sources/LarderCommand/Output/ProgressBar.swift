import StoreAccess

/// A line that shows the progress of an import or a copy.
struct ProgressBar {
  /// The amount that is done, in bytes or in entries.
  var done: Int

  /// The total amount, in the same unit; `nil` if it is unknown.
  var total: Int?

  /// The number of entries taken.
  var entries: Int

  /// The time since the beginning.
  var elapsed: Duration

  /// Returns the line, without its end.
  ///
  /// - Parameter width: The maximum width in characters. If the line does not fit, it has no bar or is cut off.
  func line(width: Int) -> String {
    let rate = elapsed > .zero ? Double(entries) / (elapsed / .seconds(1)) : 0
    var facts = ["\(entries) entries", "\(Int(rate.rounded()))/s"]
    guard let fraction else {
      facts.append(ProgressBar.text(of: elapsed))
      return String(facts.joined(separator: "  ").prefix(width))
    }
    let percent = "\(Int(fraction * 100))%"
    facts.insert(String(repeating: " ", count: 4 - percent.count) + percent, at: 0)
    if let timeLeft { facts.append("\(ProgressBar.text(of: timeLeft)) left") }
    let text = facts.joined(separator: "  ")
    let barWidth = min(40, width - text.count - 3)
    guard barWidth >= 10 else { return String(text.prefix(width)) }
    let filled = Int(fraction * Double(barWidth))
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: barWidth - filled)
    return "[\(bar)] \(text)"
  }

  /// The part that is done, from 0 to 1; `nil` if the total is unknown.
  private var fraction: Double? {
    total.map { $0 > 0 ? min(1, Double(done) / Double($0)) : 1 }
  }

  /// The estimated time for the rest at the same rate, or `nil` if there is no estimate.
  private var timeLeft: Duration? {
    guard let total, done > 0, elapsed > .zero else { return nil }
    return elapsed * (Double(max(0, total - done)) / Double(done))
  }

  /// Returns a duration as minutes and seconds, with the hours if there are any, such as `1:02:03`.
  private static func text(of duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return hours > 0
      ? "\(hours):\(twoDigits(minutes)):\(twoDigits(seconds % 60))" : "\(minutes):\(twoDigits(seconds % 60))"
  }
}

/// A display of the progress of an import or a copy on a terminal, which redraws one line.
struct ProgressDisplay {
  /// The minimum time between two drawings.
  static let interval = Duration.milliseconds(100)

  private let total: Int?
  private let width: () -> Int
  private let elapsed: () -> Duration
  private let write: (String) -> Void
  private var lastDrawn: Duration?
  private var isVisible = false

  /// Creates a display.
  ///
  /// - Parameters:
  ///   - total: The total amount, in bytes or in entries; `nil` if it is unknown.
  ///   - width: Returns the current width of the terminal in characters.
  ///   - elapsed: Returns the time since the beginning.
  ///   - write: Writes to the terminal.
  init(
    total: Int?,
    width: @escaping () -> Int,
    elapsed: @escaping () -> Duration,
    write: @escaping (String) -> Void
  ) {
    self.total = total
    self.width = width
    self.elapsed = elapsed
    self.write = write
  }

  /// Draws the line if the interval since the last drawing has passed.
  ///
  /// - Parameters:
  ///   - done: The amount that is done, in the unit of the total.
  ///   - entries: The number of entries taken.
  mutating func update(done: Int, entries: Int) {
    let now = elapsed()
    // The first drawing waits, too, because a short operation needs no bar.
    guard now - (lastDrawn ?? .zero) >= ProgressDisplay.interval else { return }
    lastDrawn = now
    let bar = ProgressBar(done: done, total: total, entries: entries, elapsed: now)
    // The last column stays free, because some terminals begin a new line after writing it.
    write("\r\(bar.line(width: width() - 1))\u{1B}[K")
    isVisible = true
  }

  /// Erases the line, so other output can be written.
  mutating func clear() {
    guard isVisible else { return }
    write("\r\u{1B}[K")
    isVisible = false
  }
}

extension ProgressDisplay {
  /// Creates a display on standard error, or returns `nil` if that is not a terminal.
  ///
  /// - Parameters:
  ///   - total: The total amount, in bytes or in entries; `nil` if it is unknown.
  ///   - start: The time of the beginning.
  init?(total: Int?, since start: ContinuousClock.Instant) {
    guard Descriptor.standardError.isTerminal else { return nil }
    self.init(
      total: total, width: { Descriptor.standardError.columns ?? 80 }, elapsed: { ContinuousClock.now - start },
      write: Diagnostics.write)
  }
}
