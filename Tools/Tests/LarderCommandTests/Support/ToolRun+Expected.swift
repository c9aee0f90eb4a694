extension ToolRun {
  /// A run that did what it was asked for, printed this, and had nothing else to say.
  static func done(_ output: String = "") -> ToolRun { ToolRun(status: 0, output: output, errors: "") }

  /// Whether the run failed with a status, nothing on standard output, and one line that contains some text.
  func failed(_ status: Int32, _ text: String) -> Bool {
    self.status == status && output.isEmpty && errors.hasPrefix("larder: ") && errors.contains(text)
      && errors.split(separator: "\n", omittingEmptySubsequences: false).count == 2
  }
}
