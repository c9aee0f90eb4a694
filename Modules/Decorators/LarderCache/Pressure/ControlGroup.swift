/// Where the control group of a process is, by what Linux tells in `/proc/self/cgroup`.
enum ControlGroup {
  /// The path of the group in the unified hierarchy, beginning with a slash; `nil` where the process is in none.
  ///
  /// - Parameter text: The text of the file, a line for each hierarchy: `0::/user.slice`.
  static func path(in text: String) -> String? {
    let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("0::/") }
    return line.map { String($0.dropFirst("0::".count)) }
  }
}
