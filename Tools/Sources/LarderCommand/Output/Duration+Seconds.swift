extension Duration {
  /// The duration to a tenth of a second below, like `1.9 s`.
  var inSeconds: String {
    let tenths = components.seconds * 10 + components.attoseconds / 100_000_000_000_000_000
    return "\(tenths / 10).\(tenths % 10) s"
  }
}
