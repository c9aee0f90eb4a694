/// How far an import or a copy has come, as a line for people to read.
struct ProgressBar {
  /// How much is done: the bytes that were read, or the entries.
  var done: Int

  /// How much there is to do in all, or `nil` where that is not known.
  var total: Int?

  /// How many entries were taken.
  var entries: Int

  /// How long it has taken so far.
  var elapsed: Duration

  /// The line, without its end.
  ///
  /// - Parameter width: The most characters it may have. What does not fit is left out, the bar first.
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

  /// How much of it all is done, from 0 to 1; `nil` where the total is not known.
  private var fraction: Double? {
    total.map { $0 > 0 ? min(1, Double(done) / Double($0)) : 1 }
  }

  /// How long the rest will take if it goes on like this, or `nil` where that cannot be said.
  private var timeLeft: Duration? {
    guard let total, done > 0, elapsed > .zero else { return nil }
    return elapsed * (Double(max(0, total - done)) / Double(done))
  }

  /// A duration as minutes and seconds, with hours where there are any, like `1:02:03`.
  private static func text(of duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return hours > 0
      ? "\(hours):\(twoDigits(minutes)):\(twoDigits(seconds % 60))" : "\(minutes):\(twoDigits(seconds % 60))"
  }
}
