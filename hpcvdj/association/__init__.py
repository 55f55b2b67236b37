"""Association: which sequences go with a disease, an HLA allele or a number, given the depth of each donor."""
