"""The package inside other libraries; each module needs the library that it is named after."""
