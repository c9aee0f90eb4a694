import StoreAccess

/// A number of bytes for people.
enum ReadableSize {
  /// Returns a number of bytes, such as `1.2 MB`, or `nil` if the number itself is as short.
  static func text(_ bytes: Int64) -> String? {
    guard bytes >= 1000 else { return nil }
    var (number, unit) = (Double(bytes), 0)
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    while number >= 999.5, unit < units.count - 1 { (number, unit) = (number / 1000, unit + 1) }
    let tenths = Int((number * 10).rounded())
    return number < 9.95 ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(number.rounded())) \(units[unit])"
  }
}
