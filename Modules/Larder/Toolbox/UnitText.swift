/// Durations and sizes as people write them in settings and on command lines.
///
/// ```swift
/// let timeout = UnitText.duration("1.5s")
/// let limit = UnitText.byteCount("64MiB")
/// ```
public enum UnitText {
  /// The units of durations, in milliseconds.
  private static let durations: [(name: String, factor: Int64)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]

  /// The units of sizes, in bytes.
  private static let sizes: [(name: String, factor: Int64)] = [
    ("", 1), ("B", 1), ("KB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
  ]

  /// Returns the duration that a text says, or `nil` if it has another form.
  ///
  /// - Parameter text: Digits, followed by `ms`, `s`, `m`, `h` or `d`, such as `500ms`.
  public static func duration(_ text: String) -> Duration? {
    number(text, units: durations).map { .milliseconds($0) }
  }

  /// Returns the number of bytes that a text says, or `nil` if it has another form.
  ///
  /// - Parameter text: Digits, followed by nothing, `B`, `KB`, `MB`, `GB` or `TB`, which are powers of 1,000, or by `KiB`,
  ///   `MiB`, `GiB` or `TiB`, which are powers of 1,024. An example is `64MB`.
  public static func byteCount(_ text: String) -> Int? {
    number(text, units: sizes).flatMap { Int(exactly: $0) }
  }

  private static func number(_ text: String, units: [(name: String, factor: Int64)]) -> Int64? {
    let digits = text.prefix { "0"..."9" ~= $0 }
    guard let number = Int64(digits), let unit = units.first(where: { $0.name == text.dropFirst(digits.count) }) else {
      return nil
    }
    let (product, overflows) = number.multipliedReportingOverflow(by: unit.factor)
    return overflows ? nil : product
  }
}
