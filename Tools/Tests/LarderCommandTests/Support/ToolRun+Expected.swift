extension ToolRun {
  /// Returns a run that succeeded with this output and without errors.
  static func done(_ output: String = "") -> ToolRun { ToolRun(status: 0, output: output, errors: "") }

  /// Returns whether the run failed with an exit code, no output, and one line of errors that contains a text.
  func failed(_ status: Int32, _ text: String) -> Bool {
    self.status == status && output.isEmpty && errors.hasPrefix("larder: ") && errors.contains(text)
      && errors.split(separator: "\n", omittingEmptySubsequences: false).count == 2
  }
}
